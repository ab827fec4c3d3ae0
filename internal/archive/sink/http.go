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

// An HTTP is a server that takes records by HTTP.
type HTTP struct {
	At     string // for people
	hints  Hints
	server string
	user   *url.Userinfo
	client *http.Client
}

// Hints are what a kind of server is called, and what is to be done where it refuses something.
type Hints struct {
	Name    string // as in "is it OpenSearch that is running there?"
	Port    string // if the URL has none
	Login   string // it wants to know who asks
	Rights  string // it does not permit it
	Missing string // there is no such thing any more
	Other   string // it refuses what it is given
}

// Forms of what is sent, and of answers.
const (
	JSON  = "application/json"
	Lines = "application/x-ndjson" // to which the answer is JSON
)

const (
	maxResponse = 64 << 20 // bytes
	idleTimeout = time.Minute
)

// NewHTTP is the server of a sink's URL, SCHEME://USER:PASSWORD@HOST:PORT/... or SCHEME+https://...?ca=FILE. Of a
// request and its answer it waits for so long.
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

// An Answer is an error: what a server says that refuses something.
type StatusError struct {
	Status int
	Text   string // "" if it says nothing in words
	Body   []byte
}

func (a *StatusError) Error() string {
	if a.Text == "" {
		return fmt.Sprintf("it answers %d", a.Status)
	}
	return fmt.Sprintf("it answers %d: %s", a.Status, a.Text)
}

// IsBusy reports whether the server has too much to do, or something in front of it is not there.
func (a *StatusError) IsBusy() bool {
	return a.Status == http.StatusTooManyRequests || a.Status/100 == 5 || a.Status == http.StatusRequestTimeout
}

// Do asks the server for something in a form, and returns a good answer.
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

// firstLine is what an answer says in short: the rest is a trace.
func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(string(data[:min(len(data), 2000)]), "")), "\n")
	return strings.TrimSpace(line[:min(len(line), 300)])
}

// Close lets go of the server.
func (h *HTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

// Explain says what went wrong with what, whether it may be over, and what to do.
func (h *HTTP) Explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, h.At, err)
	if do := TLSAdvice(err); do != "" {
		return Permanent(advice.With(said, do))
	}
	a, is := errors.AsType[*StatusError](err)
	switch {
	case !is && IsTemporary(err):
		return Temporary(advice.With(said, "is "+h.hints.Name+" running there, with http or (+https) https, and may this "+
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
