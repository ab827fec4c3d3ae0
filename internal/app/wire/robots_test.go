package wire

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/content/policy"
)

// TestRobotsRedirectsAreCounted: five redirects are followed. After that, the host counts as having no robots.txt.
func TestRobotsRedirectsAreCounted(t *testing.T) {
	t.Parallel()
	for redirects, want := range map[int][]string{
		5: {"a.test/", "a.test/yes", "a.test/r1", "a.test/r2", "a.test/r3", "a.test/r4", "a.test/r5"},
		6: {"a.test/", "a.test/yes", "a.test/no", "a.test/r1", "a.test/r2", "a.test/r3", "a.test/r4", "a.test/r5"},
	} {
		pages := map[string]http.HandlerFunc{
			"a.test/":           html(`<a href=/no>no</a><a href=/yes>yes</a>`),
			"a.test/yes":        html("yes"),
			"a.test/no":         html("no"),
			"a.test/robots.txt": redirect("/r1"),
		}
		for i := 1; i < redirects; i++ {
			pages[fmt.Sprint("a.test/r", i)] = redirect(fmt.Sprint("/r", i+1))
		}
		pages[fmt.Sprint("a.test/r", redirects)] = func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "User-agent: *\nDisallow: /no\n")
		}
		s := newSite(t, pages)
		mustRun(t, s.job(t, "a.test/"))
		s.wantAsked(t, want...)
	}
}

// TestRobotsAreReadAgainAfterADay: rules expire during a crawl, and the new ones apply. If they can no longer be
// fetched, nothing is.
func TestRobotsAreReadAgainAfterADay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		say   string
		later time.Duration
		again func(http.ResponseWriter)
		want  []string
		asked int32
	}{
		{"not yet", 23 * time.Hour, nil, []string{"a.test/", "a.test/1", "a.test/2"}, 1},
		{"other rules", 25 * time.Hour, func(w http.ResponseWriter) { io.WriteString(w, "User-agent: *\nDisallow: /2") },
			[]string{"a.test/", "a.test/1"}, 2},
		{"gone", 25 * time.Hour, func(w http.ResponseWriter) { w.WriteHeader(404) },
			[]string{"a.test/", "a.test/1", "a.test/2"}, 2},
		{"cannot be had", 25 * time.Hour, func(w http.ResponseWriter) { w.WriteHeader(503) }, []string{"a.test/"}, 6},
	} {
		t.Run(c.say, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			var later atomic.Int64
			s := newSite(t, map[string]http.HandlerFunc{
				"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
					if asked.Add(1) > 1 {
						c.again(w)
					}
				},
				"a.test/": func(w http.ResponseWriter, r *http.Request) {
					later.Store(int64(c.later))
					html(`<a href=/1>1</a><a href=/2>2</a>`)(w, r)
				},
				"a.test/1": html("1"), "a.test/2": html("2"),
			})
			j := s.job(t, "a.test/")
			j.Crawl.Now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
			mustRun(t, j)
			s.wantAsked(t, c.want...)
			if n := asked.Load(); n != c.asked {
				t.Errorf("robots.txt was asked for %d times, want %d", n, c.asked)
			}
			if c.say == "cannot be had" {
				if skipped := lines(t, j.Dir, "skipped.jsonl"); len(skipped) != 2 ||
					!strings.Contains(fmt.Sprint(skipped[0]["why"]), "robots.txt") {
					t.Errorf("skipped: %v", skipped)
				}
			}
		})
	}
}

// A resumed crawl still knows and obeys the rules.
func TestRobotsTxtIsAskedForOnceOverRuns(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w,
				"User-agent: *\nDisallow: /no")
		},
		"a.test/": html(`<a href=/1>1</a><a href=/no>no</a><a href=/2>2</a>`), "a.test/1": html("1"),
		"a.test/2": html("2"),
	})
	j := s.job(t, "a.test/")
	for pages := range int64(3) {
		k := *j
		k.Crawl.Pages = pages + 1
		if err := run(t, t.Context(), &k); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
	}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/1", "a.test/2")
	asked := 0
	for _, a := range s.asked {
		if strings.HasSuffix(a, "/robots.txt") {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("robots.txt was asked for %d times", asked)
	}
	j.Fresh = true
	mustRun(t, j)
	if n := len(s.asked); s.asked[n-4] != "a.test/robots.txt" {
		t.Errorf("begun afresh, it asked for %v", s.asked[n-4:])
	}
}
