package fetch

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"kumo/internal/base/page"
)

func TestBodiesOfSomeTypesMayBeLonger(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		if r.URL.Path == "/chunked" {
			w.(http.Flusher).Flush()
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), 3000)) // the client may have closed the connection
	}))
	defer srv.Close()
	c, err := New(Config{AllowPrivate: true, MaxBody: 1000, MaxBodyOf: []TypeLimit{{"application/pdf", 5000},
		{"video/*", 2000}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, path := range []string{"/", "/chunked"} {
		for contentType, want := range map[string]int{"text/html": 1000, "application/pdf": 3000,
			"Application/PDF; x=y": 3000, "video/mp4": 2000, "": 1000} {
			var resp page.Response
			target := srv.URL + path + "?type=" + url.QueryEscape(contentType)
			if err := c.Get(context.Background(), Request{URL: target}, &resp); err != nil {
				t.Fatal(err)
			}
			if got := len(resp.Payload); got != want || (resp.Truncated == page.Length) != (want < 3000) {
				t.Errorf("%s of type %q: %d bytes, truncated %q; want %d", path, contentType, got, resp.Truncated, want)
			}
		}
		var resp page.Response
		if err := c.Get(context.Background(), Request{URL: srv.URL + path + "?type=application/pdf", MaxBody: 10},
			&resp); err != nil || len(resp.Payload) != 10 {
			t.Errorf("a request's own limit: %d bytes, %v", len(resp.Payload), err)
		}
	}
}
