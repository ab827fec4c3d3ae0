package wire

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/policy"
	"kumo/internal/state/seen"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

// recrawlSite has a page for each result of a recrawl; the pages depend on step.
func recrawlSite(t *testing.T, step *atomic.Int64) *site {
	tagged := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Type", "text/plain")
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, "tagged")
	}
	dated := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "x.txt", time.Unix(1_700_000_000, 0), strings.NewReader("dated"))
	}
	return newSite(t, map[string]http.HandlerFunc{
		"a.test/":       html(`<a href=/tagged>1</a><a href=/dated>2</a><a href=/same>3</a><a href=/new>4</a><a href=/gone>5</a><a href=/sick>6</a>`),
		"a.test/tagged": tagged,
		"a.test/dated":  dated,
		"a.test/same":   html("always the same"),
		"a.test/new": func(w http.ResponseWriter, r *http.Request) {
			html(fmt.Sprintf("step %d <a href=/found/%d>new</a>", step.Load(), step.Load()))(w, r)
		},
		"a.test/found/0": html("zero"), "a.test/found/1": html("one"), "a.test/found/2": html("two"),
		"a.test/gone": func(w http.ResponseWriter, r *http.Request) {
			if step.Load() > 0 {
				http.NotFound(w, r)
				return
			}
			io.WriteString(w, "still here")
		},
		"a.test/sick": func(w http.ResponseWriter, r *http.Request) {
			if step.Load() == 1 {
				w.WriteHeader(http.StatusBadGateway)
			}
			io.WriteString(w, "well")
		},
	})
}

// TestRecrawl visits a site four times.
func TestRecrawl(t *testing.T) {
	t.Parallel()
	var step atomic.Int64
	s := recrawlSite(t, &step)
	j := s.job(t, "a.test/")
	now := time.Now().Truncate(time.Second)
	j.Crawl.Now = func() time.Time { return now }
	j.Crawl.Tries = 1
	interval, err := policy.ParseInterval("60m,10m,8h")
	if err != nil {
		t.Fatal(err)
	}
	j.Crawl.Recrawl.Intervals = []policy.Interval{interval}
	again := func(after time.Duration, want ...string) {
		t.Helper()
		now = now.Add(after)
		s.forget()
		again := *j
		mustRun(t, &again)
		s.wantAsked(t, want...)
	}
	again(0, "a.test/", "a.test/tagged", "a.test/dated", "a.test/same", "a.test/new", "a.test/gone", "a.test/sick",
		"a.test/found/0")
	again(30 * time.Minute)
	step.Store(1)
	again(31*time.Minute, "a.test/", "a.test/tagged", "a.test/dated", "a.test/same", "a.test/new", "a.test/gone",
		"a.test/sick", "a.test/found/0", "a.test/found/1")
	s.wantHead(t, "a.test/tagged", "If-None-Match", `"v1"`)
	s.wantHead(t, "a.test/dated", "If-Modified-Since", time.Unix(1_700_000_000, 0).UTC().Format(http.TimeFormat))
	s.wantHead(t, "a.test/same", "If-None-Match", "")
	wantRecrawls(t, j, map[string]string{"/": "unchanged 200", "/tagged": "unchanged 304", "/dated": "unchanged 304",
		"/same": "unchanged 200",
		"/new":  "changed 200", "/gone": "gone 404", "/sick": "trouble 502", "/found/0": "unchanged 200"})
	// Changed pages are visited after 40 minutes, failed and new ones after 60, unchanged ones after 90, and gone ones
	// after 120.
	again(41*time.Minute, "a.test/new")
	step.Store(2)
	again(20*time.Minute, "a.test/sick", "a.test/found/1")
	wantRecrawls(t, j, map[string]string{"/sick": "unchanged 200", "/found/1": "unchanged 200"})
	again(30*time.Minute, "a.test/", "a.test/tagged", "a.test/dated", "a.test/same", "a.test/found/0")
	again(30*time.Minute, "a.test/gone", "a.test/new", "a.test/found/2")
	wantRevisits(t, j)
	report, err := os.ReadFile(filepath.Join(j.Dir, "report.json"))
	if err != nil || !strings.Contains(string(report), `"recrawls": 18,`) {
		t.Errorf("the report: %v\n%s", err, report)
	}
}

func (s *site) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.heads = nil, nil
}

func (s *site) wantHead(t *testing.T, asked, name, want string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.asked, asked); i < 0 || s.heads[i].Header.Get(name) != want {
		t.Errorf("%s was asked for with %s %q, want %q", asked, name, s.heads[i].Header.Get(name), want)
	}
}

// wantRecrawls checks the results of the last visits.
func wantRecrawls(t *testing.T, j *job.Job, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		if what, ok := l["recrawl"]; ok {
			_, path, _ := strings.Cut(strings.TrimPrefix(l["url"].(string), "http://"), "/")
			got["/"+path] = fmt.Sprintf("%v %v", what, l["status"])
		}
	}
	for path := range maps.Keys(want) {
		if got[path] != want[path] {
			t.Errorf("%s: %q, want %q", path, got[path], want[path])
		}
	}
}

// wantRevisits checks the two kinds of revisit records and their references.
func wantRevisits(t *testing.T, j *job.Job) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(j.Dir, "warc", "*.warc*"))
	var all strings.Builder
	for _, name := range names {
		all.WriteString(unzipped(t, name))
	}
	for _, want := range []string{"revisit/server-not-modified", "revisit/identical-payload-digest",
		"http-response: HTTP/1.1 304 Not Modified"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("no WARC has %q", want)
		}
	}
	for record := range strings.SplitSeq(all.String(), "WARC/1.1\r\n") {
		if strings.Contains(record, "server-not-modified") && !strings.Contains(record, "WARC-Refers-To: <urn:uuid:") {
			t.Errorf("a revisit that refers to nothing:\n%s", record)
		}
	}
}

// TestAPageThatIsGoneIsRetired visits it six times, each after twice the time.
func TestAPageThatIsGoneIsRetired(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html(`<a href=/gone>gone</a>`)})
	j := s.job(t, "a.test/")
	now := time.Now()
	j.Crawl.Now = func() time.Time { return now }
	interval, err := policy.ParseInterval("/gone$=1h,1h,1000h")
	if err != nil {
		t.Fatal(err)
	}
	j.Crawl.Recrawl.Intervals = []policy.Interval{interval} // the page that links to it is not visited again
	visits := 0
	for range 100 {
		s.forget()
		again := *j
		mustRun(t, &again)
		s.mu.Lock()
		visits += len(slices.DeleteFunc(s.asked, func(a string) bool { return a != "a.test/gone" }))
		s.mu.Unlock()
		now = now.Add(time.Hour)
	}
	if visits != 5 {
		t.Errorf("%d visits, want 5", visits)
	}
}

// TestACrawlThatKeepsOn sleeps until a page is due, and then continues.
func TestACrawlThatKeepsOn(t *testing.T) {
	t.Parallel()
	var step atomic.Int64
	s := recrawlSite(t, &step)
	j := s.job(t, "a.test/")
	interval, err := policy.ParseInterval("1s,1s,2s")
	if err != nil {
		t.Fatal(err)
	}
	j.Crawl.Recrawl = policy.Recrawl{Intervals: []policy.Interval{interval}, Continuous: true}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var visits, idle atomic.Int64
	j.Listener.Idle = func(time.Time) {
		if idle.Add(1); visits.Load() > 20 {
			stop()
		}
	}
	j.Listener.Visited = func(*page.Record) { visits.Add(1) }
	if err := run(t, ctx, j); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if visits.Load() < 20 || idle.Load() < 2 {
		t.Errorf("%d visits, %d times idle", visits.Load(), idle.Load())
	}
}

// TestRecrawlsSurviveAStop: a URL that was scheduled for a recrawl but not visited is visited once in the next run.
func TestRecrawlsSurviveAStop(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{}
	var links strings.Builder
	for i := range 50 {
		fmt.Fprintf(&links, "<a href=/%d>x</a>", i)
		pages[fmt.Sprintf("a.test/%d", i)] = html(fmt.Sprint("page ", i))
	}
	pages["a.test/"] = html(links.String())
	s := newSite(t, pages)
	j := s.job(t, "a.test/")
	now := time.Now()
	j.Crawl.Now = func() time.Time { return now }
	j.Crawl.Recrawl.Intervals = []policy.Interval{policy.DefaultInterval()}
	mustRun(t, j)
	now = now.Add(8 * 24 * time.Hour)
	s.forget()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var visits atomic.Int64
	stopped := *j
	stopped.Listener.Visited = func(*page.Record) {
		if visits.Add(1) == 10 {
			stop()
		}
	}
	if err := run(t, ctx, &stopped); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	rest := *j
	mustRun(t, &rest)
	s.mu.Lock()
	defer s.mu.Unlock()
	times := map[string]int{}
	for _, a := range s.asked {
		times[a]++
	}
	delete(times, "a.test/robots.txt")
	for a, n := range times {
		if n != 1 {
			t.Errorf("%s was visited %d times", a, n)
		}
	}
	if len(times) != 51 {
		t.Errorf("%d pages were visited again", len(times))
	}
	if db, ok := seenOf(t, &stopped); ok {
		for e, err := range db.Scan("") {
			if err != nil || e.Waits() {
				t.Errorf("%+v waits still (%v)", e, err)
			}
		}
	}
}

func seenOf(t *testing.T, j *job.Job) (*seen.DB, bool) {
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	db, ok := c.Views.Seen.(*seen.DB)
	return db, ok
}

func unzipped(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(all)
}

// A server compresses each response again with a new timestamp: the page is unchanged, although its payload differs.
func TestRecrawlOfWhatIsCompressedAnew(t *testing.T) {
	t.Parallel()
	var step atomic.Int64
	coded := func(page func() string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.ModTime = time.Unix(1_700_000_000+step.Load(), 0)
			io.WriteString(z, page())
			if err := z.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":      coded(func() string { return `<a href=/other>1</a><a href=/plain>2</a>` }),
		"a.test/other": coded(func() string { return fmt.Sprint("step ", step.Load()) }),
		"a.test/plain": func(w http.ResponseWriter, r *http.Request) {
			page := func() string { return "coded at first only" }
			if step.Load() == 0 {
				coded(page)(w, r)
				return
			}
			html(page())(w, r)
		},
	})
	j := s.job(t, "a.test/")
	now := time.Now().Truncate(time.Second)
	j.Crawl.Now = func() time.Time { return now }
	interval, err := policy.ParseInterval("60m,60m,60m")
	if err != nil {
		t.Fatal(err)
	}
	j.Crawl.Recrawl.Intervals = []policy.Interval{interval}
	for range 2 {
		again := *j
		mustRun(t, &again)
		now = now.Add(2 * time.Hour)
		step.Add(1)
	}
	wantRecrawls(t, j, map[string]string{"/": "unchanged 200", "/other": "changed 200", "/plain": "unchanged 200"})
	var digests, contents []string
	_, err = store.EachLineOf(vfs.OS, filepath.Join(j.Dir, "pages.jsonl"), func(line []byte, _ int64) error {
		if p, err := jsonl.ParsePage(line); err == nil && strings.HasSuffix(p.URL, "/") {
			digests, contents = append(digests, p.Digest), append(contents, p.ContentDigest)
			if p.Revisit != "" {
				t.Errorf("a record refers to one with other bytes: %s", line)
			}
		}
		return nil
	})
	if err != nil || len(digests) != 2 || digests[0] == digests[1] || contents[0] == "" || contents[0] != contents[1] {
		t.Errorf("%v: digests %v, of the content %v", err, digests, contents)
	}
}
