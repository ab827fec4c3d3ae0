package wire

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/content/policy"
)

// A tdmrep.json is fetched once, before the pages of its origin, and again if the server fails.
func TestTDMRep(t *testing.T) {
	t.Parallel()
	const rules = `[{"location": "/b", "tdm-reservation": 1}, {"location": "/c", "tdm-reservation": 0}]`
	for name, c := range map[string]struct {
		robots   string
		status   int   // of the first answers
		failures int32 // how often it is given
		asked    int   // requests for the file
		withheld string
	}{
		"found":                   {asked: 1, withheld: "/b"},
		"fails twice":             {status: 503, failures: 2, asked: 3, withheld: "/b"},
		"fails forever":           {status: 500, failures: 1 << 20, asked: 5},
		"missing":                 {status: 404, failures: 1 << 20, asked: 1},
		"redirects":               {status: 302, failures: 1 << 20, asked: 1},
		"forbidden by robots.txt": {robots: "User-agent: *\nDisallow: /.well-known/\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed atomic.Int32
			s := newSite(t, map[string]http.HandlerFunc{
				"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.robots) },
				"a.test/":           html("<a href=/b>b</a> <a href=/c>c</a> <a href=/d>d</a>"),
				"a.test/b":          html("b"), "a.test/c": html("c"), "a.test/d": html("d"),
				"a.test/.well-known/tdmrep.json": func(w http.ResponseWriter, _ *http.Request) {
					if failed.Add(1) <= c.failures {
						w.Header().Set("Location", "/elsewhere.json")
						w.WriteHeader(c.status)
						return
					}
					_, _ = io.WriteString(w, rules)
				},
			})
			j := s.job(t, "a.test/")
			j.Crawl.Usage = policy.UsageTDM
			j.Frontier.PerHost, j.Frontier.Delay = 4, -1
			j.Text = func(resp *page.Response, _ *page.Page) (*page.MainText, error) {
				return &page.MainText{Text: string(resp.Body)}, nil
			}
			mustRun(t, j)
			files, pages, withheld := 0, 0, ""
			for _, asked := range s.asked {
				switch {
				case strings.HasSuffix(asked, "tdmrep.json"):
					if files++; pages > 0 {
						t.Errorf("asked after a page: %v", s.asked)
					}
				case !strings.HasSuffix(asked, "/robots.txt"):
					pages++
				}
			}
			if files != c.asked || pages != 4 {
				t.Errorf("asked %d times for the file, want %d, and for %d pages: %v", files, c.asked, pages, s.asked)
			}
			for _, l := range lines(t, j.Dir, "pages.jsonl") {
				if l["withheld"] != nil {
					withheld += strings.TrimPrefix(l["url"].(string), s.url("a.test/")[:len(s.url("a.test/"))-1])
				}
			}
			if withheld != c.withheld {
				t.Errorf("withheld: %q, want %q", withheld, c.withheld)
			}
			if texts := lines(t, j.Dir, "text.jsonl"); len(texts) != 4-len(c.withheld)/2 {
				t.Errorf("%d texts", len(texts))
			}
		})
	}
}

// URLs are skipped by what robots.txt states, unless an override of their host says otherwise.
func TestUsageOverridesOfHosts(t *testing.T) {
	t.Parallel()
	signals := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "Content-Signal: ai-train=no\nUser-agent: *\nAllow: /\n")
	}
	s := newSite(t, map[string]http.HandlerFunc{"a.test/robots.txt": signals, "b.test/robots.txt": signals,
		"a.test/": html("a"), "b.test/": html("b")})
	j := s.job(t, "a.test/")
	j.Seeds = append(j.Seeds, s.url("b.test/"))
	j.Crawl.Usage = policy.UsageTrainAI | policy.UsageSkip
	all, err := policy.ParseOverrides("{match: b.test, usage: record}")
	if err != nil {
		t.Fatal(err)
	}
	j.Crawl.Overrides = policy.NewOverrides(all)
	mustRun(t, j)
	s.wantAsked(t, "b.test/")
	if l := lines(t, j.Dir, "skipped.jsonl"); len(l) != 1 || l[0]["rule"] != "usage" ||
		l[0]["why"] != "Content-Signal: ai-train=no" {
		t.Errorf("skipped: %v", l)
	}
}
