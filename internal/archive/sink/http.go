package sink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"kumo/internal/base/advice"
)

// An HTTP is a client of a server that receives records over HTTP.
type HTTP struct {
	At     string // URL for messages
	hints  Hints
	server string
	user   *url.Userinfo
	client *http.Client
}

// Hints has the name of a kind of server, and advice for its errors.
type Hints struct {
	Name    string // name in advice
	Port    string // default port
	Login   string // advice for a missing login
	Rights  string // advice for missing permissions
	Missing string // advice for a missing table or index
	Other   string // advice for other errors
}

// Media types of requests and responses.
const (
	JSON  = "application/json"
	Lines = "application/x-ndjson" // the response is JSON
)

const (
	maxResponse = 64 << 20 // bytes
	idleTimeout = time.Minute
)

// NewHTTP returns a client for a sink's URL, SCHEME://USER:PASSWORD@HOST:PORT/... or SCHEME+https://...?ca=FILE.
// timeout limits a request with its response.
func NewHTTP(at *url.URL, timeout time.Duration, words Hints) (*HTTP, error) {
	h := &HTTP{At: RedactURL(at), hints: words, user: at.User}
	scheme, isTLS := "http://", strings.HasSuffix(at.Scheme, "+https")
	if isTLS {
		scheme = "https://"
	}
	trust, err := TLS(at, isTLS)
	if err != nil {
		return nil, err
	}
	h.client = &http.Client{Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: idleTimeout,
			TLSClientConfig: trust}}
	if h.server = scheme + at.Host; at.Port() == "" {
		h.server += ":" + words.Port
	}
	if password := os.Getenv("KUMO_SINK_PASSWORD"); at.User != nil && password != "" {
		if _, has := at.User.Password(); !has {
			h.user = url.UserPassword(at.User.Username(), password)
		}
	}
	return h, nil
}

// A StatusError is an error response of the server.
type StatusError struct {
	Status int
	Text   string // "" if the response has no message
	Body   []byte
}

func (a *StatusError) Error() string {
	if a.Text == "" {
		return fmt.Sprintf("HTTP status %d", a.Status)
	}
	return fmt.Sprintf("HTTP status %d: %s", a.Status, a.Text)
}

// IsBusy reports whether the server is overloaded, or a proxy cannot reach it.
func (a *StatusError) IsBusy() bool {
	return a.Status == http.StatusTooManyRequests || a.Status/100 == 5 || a.Status == http.StatusRequestTimeout
}

// Do sends a request with a body of the media type form, and returns the body and header of a successful response.
func (h *HTTP) Do(ctx context.Context, method, path, form string, body []byte) ([]byte, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", form)
	if req.Header.Set("Accept", form); form == Lines {
		req.Header.Set("Accept", JSON)
	}
	if h.user != nil {
		password, _ := h.user.Password()
		req.SetBasicAuth(h.user.Username(), password)
	}
	resp, err := h.client.Do(req)
	if err != nil {
		if e, is := errors.AsType[*url.Error](err); is {
			err = e.Err // without the URL
		}
		return nil, nil, Temporary(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	switch {
	case err != nil:
		return nil, nil, Temporary(err)
	case resp.StatusCode/100 != 2:
		return nil, nil, &StatusError{Status: resp.StatusCode, Text: firstLine(data), Body: data}
	case resp.StatusCode == http.StatusNoContent:
		data = nil
	}
	return data, resp.Header, nil
}

// firstLine returns the first line of an error message; the rest is a stack trace.
func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(data[:min(len(data), 2000)]), "")), "\n")
	return strings.TrimSpace(line[:min(len(line), 300)])
}

// Close closes idle connections.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

// Explain adds to an error what failed, whether it is temporary, and how to fix it.
func (h *HTTP) Explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, h.At, err)
	if do := TLSAdvice(err); do != "" {
		return Permanent(advice.With(said, do))
	}
	a, is := errors.AsType[*StatusError](err)
	switch {
	case !is && IsTemporary(err):
		return Temporary(advice.With(said, "is "+h.hints.Name+" running there, with http or (+https) https, and can this "+
			"machine reach it?"))
	case !is:
		return advice.With(said, "is it "+h.hints.Name+" that is running there?")
	case a.IsBusy():
		return Temporary(said)
	case a.Status == http.StatusUnauthorized:
		return advice.With(said, h.hints.Login)
	case a.Status == http.StatusForbidden:
		return advice.With(said, h.hints.Rights)
	case a.Status == http.StatusNotFound:
		return advice.With(said, h.hints.Missing)
	}
	return advice.With(said, h.hints.Other)
}
