package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"kumo/internal/view/web/ui"
)

// A REST is a client of the REST API.
type REST struct {
	client *http.Client
	base   string
	token  string
}

const (
	maxAnswer      = 4 << 20          // bytes
	maxField       = 2000             // bytes of a text other than a page's
	requestTimeout = 40 * time.Second // more than the server's own limit
)

// Local returns a client of the handler that of returns, which may change.
func Local(of func() http.Handler) *REST {
	return &REST{&http.Client{Transport: transport(of), Timeout: requestTimeout}, "http://localhost", ""}
}

// Remote returns a client of a web page's server, at a URL as printed by kumo open.
func Remote(at *url.URL) *REST {
	c := &http.Client{Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return &REST{c, at.Scheme + "://" + at.Host + strings.TrimSuffix(at.EscapedPath(), "/"), at.Query().Get("token")}
}

// get returns an answer in which all characters are visible.
func (r *REST) get(ctx context.Context, path string, q url.Values) (map[string]any, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.base+"/api/v1"+path+"?"+q.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		var u *url.Error // drop the URL, which does not help the user
		if errors.As(err, &u) {
			err = u.Err
		}
		return nil, cleanError(fmt.Errorf("the crawl does not answer: %w", err))
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the crawl does not answer: %w", err)
	}
	if len(text) > maxAnswer {
		return nil, fmt.Errorf("the answer has more than %d bytes: request less", maxAnswer)
	}
	var x map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&x); err != nil || resp.StatusCode >= http.StatusMultipleChoices && x["title"] == nil {
		return nil, fmt.Errorf("the server is not kumo with a REST API: it answers %s", resp.Status)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, cleanError(fmt.Errorf("%v: %v", x["title"], x["detail"]))
	}
	visible(x)
	return x, nil
}

// visible escapes invisible characters and shortens long texts, except a page's text, which has its own limit.
func visible(x any) any {
	switch x := x.(type) {
	case string:
		return shorten(x)
	case []any:
		for i := range x {
			x[i] = visible(x[i])
		}
	case map[string]any:
		for k, v := range x {
			if text, is := v.(string); is && k == "text" && x["as"] != nil {
				x[k] = ui.Plain(text, true)
				continue
			}
			x[k] = visible(v)
		}
		for _, k := range slices.Collect(maps.Keys(x)) {
			if plain := shorten(k); plain != k {
				x[plain] = x[k]
				delete(x, k)
			}
		}
	}
	return x
}

func shorten(s string) string {
	if len(s) > maxField {
		s = strings.ToValidUTF8(s[:maxField], "") + "…"
	}
	return ui.Plain(s, false)
}

// cleanError returns an error whose text is visible and short.
func cleanError(err error) error { return errors.New(shorten(err.Error())) }

// A transport passes requests to a handler without a network.
type transport func() http.Handler

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &ui.Answer{HeaderMap: http.Header{}, Status: http.StatusOK, MaxBody: maxAnswer}
	t().ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	return &http.Response{Status: fmt.Sprint(w.Status, " ", http.StatusText(w.Status)), StatusCode: w.Status,
		Header: w.HeaderMap, Body: io.NopCloser(&w.Body), Request: r}, nil
}
