package wire

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/parse"
)

// TestManyLinks: a page with many links is parsed again in a large slot, which reads as many links as memory allows.
func TestManyLinks(t *testing.T) {
	small, large := &job.Job{Memory: 16 << 20}, &job.Job{Memory: 16 << 30}
	for name, c := range map[string]struct {
		job   *job.Job
		room  int64
		links int
		all   bool
	}{
		"ordinary slot":              {large, 1 << 20, 15_000, false},
		"large slot":                 {small, 12 << 20, 15_000, true},
		"large slot, little memory":  {small, 12 << 20, 200_000, false},
		"large slot, enough memory":  {large, 64 << 20, 200_000, true},
		"large slot, many long URLs": {small, 12 << 20, 49_000, false},
	} {
		t.Run(name, func(t *testing.T) {
			var body strings.Builder
			for i := range c.links {
				body.WriteString("<a href=/")
				if strings.HasSuffix(name, "long URLs") {
					body.WriteString(strings.Repeat("x", 200))
				}
				body.WriteString(strconv.Itoa(i) + ">")
			}
			resp := &page.Response{URL: "http://h.test/", Status: 200, Header: http.Header{"Content-Type": {"text/html"}},
				Body: []byte(body.String())}
			var pg page.Page
			if err := parse.New(parserConfig(c.job, c.room)).Parse(resp, &pg); err != nil {
				t.Fatal(err)
			}
			if all := len(pg.Links) == c.links; all != c.all || pg.MemoryCut == c.all || (pg.LinksCut == "") != c.all {
				t.Errorf("%d links of %d, cut: %v, by %q", len(pg.Links), c.links, pg.MemoryCut, pg.LinksCut)
			}
		})
	}
}

// An unknown URL may be the target of an unread link.
func TestExplainOfALinkThatWasNotRead(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		for i := range 200_000 {
			fmt.Fprintf(w, "<a href=/f/%d>", i)
		}
	}))
	t.Cleanup(s.Close)
	j := &job.Job{Dir: t.TempDir(), Name: "cut", Scope: weburl.ScopeHost, Seeds: []string{s.URL + "/"}, Memory: 16 << 20}
	j.Crawl.Depth, j.Fetch.AllowPrivate = 0, true
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	l := openTestLook(t, j)
	defer l.Close()
	for path, want := range map[string]inspect.Explanation{
		"/":         {Fate: inspect.Fetched},
		"/f/199999": {Fate: inspect.Unknown, LinksCut: 1},
	} {
		x, err := l.Explain(t.Context(), s.URL+path)
		if err != nil || x.Fate != want.Fate || x.LinksCut != want.LinksCut {
			t.Errorf("%s: %+v, %v", path, x, err)
		}
	}
}
