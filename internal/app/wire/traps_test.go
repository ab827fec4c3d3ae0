package wire

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"kumo/internal/app/job"
	"kumo/internal/base/weburl"
	"kumo/internal/content/traps"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/testmain"
	"kumo/internal/lab/trapweb"
)

// trapJob returns a job that crawls a web with traps.
func trapJob(t *testing.T, seed uint64, pages int) (*job.Job, *trapweb.Web) {
	t.Helper()
	web := trapweb.New(seed, pages)
	s := httptest.NewServer(web)
	t.Cleanup(s.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "http://"), ":")
	j := &job.Job{Dir: t.TempDir(), Name: "traps", Scope: weburl.ScopeDomain,
		Seeds: []string{"http://www." + trapweb.Domain + ":" + port + "/"}}
	j.Crawl.Depth = -1
	j.Frontier.Hosts, j.Frontier.PerHost = 16, 4
	j.Fetch.AllowPrivate, j.Fetch.Resolve = true, []string{"*:*:127.0.0.1"}
	return j, web
}

// A crawl of a web with endless traps ends, has all real pages, and reports the excluded ones.
func TestTrapsEnd(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	many, little := 1500, 0.15
	if testmain.Rounds(0, 1) > 0 {
		many, little = 5000, 0.05
	}
	for _, c := range []struct {
		seed  uint64
		pages int
		waste float64
	}{{1, 300, 0.5}, {1, many, little}, {2, many, little}, {3, many, little}} {
		t.Run(fmt.Sprintf("seed %d, %d pages", c.seed, c.pages), func(t *testing.T) {
			if c.seed > 1 && os.Getenv("KUMO_TEST_TRAPS") == "" {
				t.Skip("takes half a minute; KUMO_TEST_TRAPS=1 has it run, as .ci/long web does")
			}
			t.Parallel()
			j, web := trapJob(t, c.seed, c.pages)
			mustRun(t, j)
			s := web.Score()
			t.Log(s)
			if s.Honest != c.pages || s.Waste() > c.waste {
				t.Errorf("%d of %d honest pages, %.1f %% in vain", s.Honest, c.pages, 100*s.Waste())
			}
			left := 0
			for _, line := range lines(t, j.Dir, "skipped.jsonl") {
				if line["rule"] == crawl.RuleTrap && traps.Pattern(fmt.Sprint(line["why"])) != "" {
					left++
				}
			}
			if left == 0 {
				t.Error("nothing stands in skipped.jsonl")
			}
		})
	}
}

// finiteSite returns a handbook in several languages, most of whose pages are not translated, and an application whose
// routes are in its sitemap and all show the same page; and the paths of its pages.
func finiteSite(languages, chapters, routes int) (http.Handler, []string) {
	pages := map[string]string{}
	var root, sitemap strings.Builder
	for l := range languages {
		fmt.Fprintf(&root, "<a href=/doc/l%c/>language</a> ", 'a'+l)
		var contents strings.Builder
		for c := range chapters {
			to := fmt.Sprintf("/doc/l%c/chapter-%c%c.html", 'a'+l, 'a'+c/26, 'a'+c%26)
			fmt.Fprintf(&contents, "<li><a href=%s>Chapter</a>", to)
			text := c
			if c < 2 {
				text += 1000 * l // a translated page
			}
			pages[to] = "<p>" + words(text, 200)
		}
		pages[fmt.Sprintf("/doc/l%c/", 'a'+l)] = "<p>" + words(-1, 60) + contents.String()
	}
	for r := range routes {
		fmt.Fprintf(&sitemap, "<url><loc>/route/%d</loc></url>", r)
		pages[fmt.Sprintf("/route/%d", r)] = "<div id=app></div>"
	}
	for _, mirror := range []string{"ma", "mb", "mc"} { // a site with a chain of pages, three times
		fmt.Fprintf(&root, "<a href=/%s/1.html>mirror</a> ", mirror)
		for c := 1; c < chapters; c++ {
			pages[fmt.Sprintf("/%s/%d.html", mirror, c)] = fmt.Sprintf("<p>%s<a href=%d.html>next</a>", words(-2-c, 100),
				c%(chapters-1)+1)
		}
	}
	pages["/"] = "<p>" + words(-2, 60) + root.String()
	var urls []string
	for path := range pages {
		urls = append(urls, path)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, known := pages[r.URL.Path]
		switch {
		case r.URL.Path == "/robots.txt":
			fmt.Fprintf(w, "Sitemap: http://%s/sitemap.xml\n", r.Host)
		case r.URL.Path == "/sitemap.xml":
			w.Header().Set("Content-Type", "application/xml")
			fmt.Fprintf(w, "<urlset>%s</urlset>", strings.ReplaceAll(sitemap.String(), "<loc>", "<loc>http://"+r.Host))
		case !known:
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!DOCTYPE html><title>t</title>%s", page)
		}
	}), urls
}

// words returns a distinct text for each number.
func words(of, n int) string {
	dice := rand.New(rand.NewPCG(uint64(of), 1))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "w%c%c%c ", 'a'+dice.IntN(26), 'a'+dice.IntN(26), 'a'+dice.IntN(26))
	}
	return b.String()
}

// A finite site is crawled completely, even if its pages have much in common, and even if the run is interrupted.
func TestAFiniteSiteIsCrawledWhole(t *testing.T) {
	t.Parallel()
	h, want := finiteSite(12, 40, 300)
	isCrawledWhole(t, h, want, 300, 600)
}

// Each translation is a chain of pages without a table of contents, and its first 40 chapters are not translated.
func TestTranslationsThatAreChainsAreCrawledWhole(t *testing.T) {
	t.Parallel()
	const languages, chapters, untranslated = 12, 60, 40
	want := []string{"/"}
	for l := range languages {
		want = append(want, fmt.Sprintf("/l%02d/", l))
		for c := range chapters {
			want = append(want, fmt.Sprintf("/l%02d/c%d", l, c))
		}
	}
	isCrawledWhole(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		var language, chapter int
		switch n, _ := fmt.Sscanf(r.URL.Path, "/l%d/c%d", &language, &chapter); {
		case r.URL.Path == "/":
			for l := range languages {
				fmt.Fprintf(w, "<a href=/l%02d/>language</a> ", l)
			}
		case n == 1:
			fmt.Fprintf(w, "<h1>%d</h1><a href=c0>start</a>", language)
		case n < 2 || chapter < 0 || chapter >= chapters:
			http.NotFound(w, r)
		default:
			text := chapter
			if chapter >= untranslated {
				text += 1000 * (1 + language)
			}
			fmt.Fprintf(w, "<p>%s</p><a href=./>up</a>", words(text, 150))
			if chapter > 0 {
				fmt.Fprintf(w, "<a href=c%d>previous</a>", chapter-1)
			}
			if chapter < chapters-1 {
				fmt.Fprintf(w, "<a href=c%d>next</a>", chapter+1)
			}
		}
	}), want)
}

// A calendar with few words, whose months have different links, is recognized as a trap.
func TestACalendarOfFewWordsEnds(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		switch m, err := strconv.Atoi(r.URL.Query().Get("m")); {
		case r.URL.Path == "/":
			fmt.Fprint(w, words(1, 50), "<a href=/calendar?m=1>calendar</a>")
		case err != nil:
			http.NotFound(w, r)
		default:
			fmt.Fprintf(w, "<h1>%d/%d</h1><p>No events this month.</p><a href=?m=%d>previous</a><a href=?m=%d>next</a>", m%12+1,
				1970+m/12, m-1, m+1)
		}
	}))
	t.Cleanup(s.Close)
	j := &job.Job{Dir: t.TempDir(), Name: "calendar", Scope: weburl.ScopeHost, Seeds: []string{s.URL + "/"}}
	j.Crawl.Depth, j.Crawl.Pages = -1, 1000
	j.Fetch.AllowPrivate = true
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if pages := len(lines(t, j.Dir, "pages.jsonl")); pages > 51 {
		t.Errorf("%d pages were fetched of a calendar without end", pages)
	}
}

// isCrawledWhole crawls a site in several runs. All runs except the last end at a page limit.
func isCrawledWhole(t *testing.T, h http.Handler, want []string, limits ...int64) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	j := &job.Job{Dir: t.TempDir(), Name: "finite", Scope: weburl.ScopeHost, Seeds: []string{s.URL + "/"}}
	j.Crawl.Depth = -1
	j.Frontier.Hosts, j.Frontier.PerHost = 4, 2
	j.Fetch.AllowPrivate = true
	for _, pages := range append(limits, 0) { // those with a limit end with URLs that are deferred
		j.Crawl.Pages = pages
		if err := run(t, t.Context(), j); err != nil && pages == 0 {
			t.Fatal(err)
		}
	}
	got := map[string]bool{}
	for _, line := range lines(t, j.Dir, "pages.jsonl") {
		got[strings.TrimPrefix(fmt.Sprint(line["url"]), s.URL)] = true
	}
	missing := 0
	for _, path := range want {
		if !got[path] {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d pages are missing", missing, len(want))
	}
	skipped, err := os.ReadFile(filepath.Join(j.Dir, "skipped.jsonl"))
	if err != nil || len(skipped) > 0 {
		t.Errorf("left out: %s %v", skipped, err)
	}
}

// A page outside the trap links to pages in it, after some were excluded, or shortly before: they are fetched, none
// twice. The page is a seed of the crawl's second run.
func TestALinkLetsInWhatWasCutOff(t *testing.T) {
	t.Parallel()
	const first, last = 10, 60             // pages of the trap to which the late page links
	for _, limit := range []int64{0, 12} { // of the first run; with 12 it ends before any page is excluded
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			fetched := map[string]int{}
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				fetched[r.URL.Path]++
				mu.Unlock()
				w.Header().Set("Content-Type", "text/html")
				n, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/p/"))
				switch {
				case r.URL.Path == "/":
					fmt.Fprint(w, words(1, 50), `<a href=/p/0>next</a>`)
				case r.URL.Path == "/late":
					fmt.Fprint(w, words(2, 50))
					for i := first; i <= last; i++ {
						fmt.Fprintf(w, `<a href=/p/%d>page</a>`, i)
					}
				case err != nil:
					http.NotFound(w, r)
				default:
					fmt.Fprintf(w, `%s<a href=/p/%d>next</a>`, words(3, 50), n+1)
				}
			}))
			t.Cleanup(s.Close)
			j := &job.Job{Dir: t.TempDir(), Name: "late", Scope: weburl.ScopeHost, Seeds: []string{s.URL + "/"}}
			j.Crawl.Depth = -1
			j.Frontier.Hosts, j.Frontier.PerHost = 1, 1
			j.Fetch.AllowPrivate = true
			j.Crawl.Pages = limit
			if err := run(t, t.Context(), j); err != nil && limit == 0 {
				t.Fatal(err)
			}
			if n := fetched[fmt.Sprintf("/p/%d", last)]; n > 0 {
				t.Fatalf("the first run came to page %d", last)
			}
			j.Crawl.Pages, j.Seeds = 0, append(j.Seeds, s.URL+"/late")
			mustRun(t, j)
			for path, n := range fetched {
				if n > 1 && path != "/robots.txt" {
					t.Errorf("%s was fetched %d times", path, n)
				}
			}
			for i := first; i <= last; i++ {
				if path := fmt.Sprintf("/p/%d", i); fetched[path] == 0 {
					t.Errorf("%s was not fetched", path)
				}
			}
			if n := len(fetched); n > 2*last {
				t.Errorf("%d pages were fetched: the trap has no end", n)
			}
			wantVerified(t, j.Dir)
		})
	}
}
