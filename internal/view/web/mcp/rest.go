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

// A REST is where questions are asked.
type REST struct {
	client *http.Client
	base   string
	token  string
}

const (
	maxAnswer      = 4 << 20          // bytes
	maxField       = 2000             // bytes of a text that is not a page's
	requestTimeout = 40 * time.Second // more than a server gives itself
)

// Local asks the REST that a handler has, which may be another one each time.
func Local(of func() http.Handler) *REST {
	return &REST{&http.Client{Transport: transport(of), Timeout: requestTimeout}, "http://localhost", ""}
}

// Remote asks a server of a web page at a URL, as kumo open prints it.
func Remote(at *url.URL) *REST {
	c := &http.Client{Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	return &REST{c, at.Scheme + "://" + at.Host + strings.TrimSuffix(at.EscapedPath(), "/"), at.Query().Get("token")}
}

// ask gives an answer, in which all can be seen.
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
		var u *url.Error // whose URL says nothing to who asks
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
		return nil, fmt.Errorf("the answer has more than %d bytes: ask for less", maxAnswer)
	}
	var x map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&x); err != nil || resp.StatusCode >= http.StatusMultipleChoices && x["title"] == nil {
		return nil, fmt.Errorf("what answers is no kumo with a REST: it says %s", resp.Status)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, cleanError(fmt.Errorf("%v: %v", x["title"], x["detail"]))
	}
	visible(x)
	return x, nil
}

// visible makes visible what is not, and shortens what is long but for a page's text, which is bounded.
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

// cleanError is an error in words that can be seen.
func cleanError(err error) error { return errors.New(shorten(err.Error())) }

// A transport has a handler answer, with no network between.
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
