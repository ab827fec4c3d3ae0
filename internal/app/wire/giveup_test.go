package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/state/journal/file"
)

// breakOff closes the connection without a response.
func breakOff(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

func TestAFewBadURLsDoNotCostAHost(t *testing.T) {
	t.Parallel()
	pages := map[string]http.HandlerFunc{}
	var links strings.Builder
	for i := range 5 {
		pages[fmt.Sprintf("a.test/bad%d", i)] = breakOff
		fmt.Fprintf(&links, "<a href=/bad%d>b</a>", i)
	}
	for i := range 10 {
		pages[fmt.Sprintf("a.test/good%d", i)] = html("good")
		fmt.Fprintf(&links, "<a href=/good%d>g</a>", i)
	}
	pages["a.test/"] = html(links.String())
	for _, tries := range []int{1, 3} {
		s := newSite(t, pages)
		j := s.job(t, "a.test/")
		j.Crawl.Tries = tries
		mustRun(t, j)
		good := 0
		for _, l := range lines(t, j.Dir, "pages.jsonl") {
			if strings.Contains(l["url"].(string), "/good") {
				good++
			}
		}
		if good != 10 {
			t.Errorf("with %d tries: %d good pages of 10", tries, good)
		}
	}
}

func TestABadSchemeDoesNotCostTheOther(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":  html(`<a href="https://a.test:PORT/">tls</a><a href="/1">1</a><a href="/2">2</a>`),
		"a.test/1": html("1"), "a.test/2": html("2"),
	})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/1", "a.test/2")
	if skipped := lines(t, j.Dir, "skipped.jsonl"); len(skipped) != 1 || skipped[0]["rule"] != "failed" {
		t.Errorf("skipped: %v", skipped)
	}
}

func TestAURLThatAlwaysAsksForPatienceLetsOthersPass(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":     html(`<a href=/busy>busy</a><a href=/1>1</a>`),
		"a.test/busy": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"a.test/1":    html(`<a href=/2>2</a>`), "a.test/2": html("2"),
	})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	statuses := map[any]int{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		statuses[l["status"]]++
	}
	if statuses[200.0] != 3 {
		t.Errorf("statuses %v, want three of 200", statuses)
	}
}

// TestRobotsElsewhereThatCannotBeHadEndsTheCrawl: hosts whose robots.txt redirects to an abandoned host must not wait
// forever.
func TestRobotsElsewhereThatCannotBeHadEndsTheCrawl(t *testing.T) {
	t.Parallel()
	to := redirect("http://dead.test:1/rules")
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": to, "b.test/robots.txt": to, "c.test/robots.txt": to,
		"a.test/": html("a"), "b.test/": html("b"), "c.test/": html("c"),
	})
	j := s.job(t, "a.test/")
	j.Seeds = append(j.Seeds, s.url("b.test/"), s.url("c.test/"), "http://dead.test:1/")
	for range 2 {
		c, err := Open(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		report, err := c.Run(t.Context())
		if err := errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
		s.wantAsked(t)
		if report.Abandoned != 4 || report.Waiting != 4 {
			t.Errorf("%d given up, %d waiting, want all four seeds", report.Abandoned, report.Waiting)
		}
	}
	if n := len(lines(t, j.Dir, "skipped.jsonl")); n != 4 {
		t.Errorf("skipped.jsonl has %d lines, want 4", n)
	}
}

func TestASeedGivenLaterMayHaveLainTooDeep(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/": html(`<a href=/1>1</a>`), "a.test/1": html(`<a href=/2>2</a>`), "a.test/2": html(`<a href=/3>3</a>`),
		"a.test/3": html("3"),
	})
	j := s.job(t, "a.test/")
	j.Crawl.Depth = 1
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/1")
	j.Seeds = []string{s.url("a.test/2")}
	mustRun(t, j)
	s.wantAsked(t, "a.test/", "a.test/1", "a.test/2", "a.test/3")
}

// TestAServerThatStopsCostsNoURL: requests in progress when a host disappears are retried in the next run, like the
// rest.
func TestAServerThatStopsCostsNoURL(t *testing.T) {
	t.Parallel()
	var links strings.Builder
	for i := range 15 {
		fmt.Fprintf(&links, "<a href=/%d>x</a>", i)
	}
	var s *site
	s = newSite(t, map[string]http.HandlerFunc{"a.test/": func(w http.ResponseWriter, r *http.Request) {
		s.Listener.Close()
		w.Header().Set("Connection", "close")
		html(links.String())(w, r)
	}})
	j := s.job(t, "a.test/")
	j.Frontier.PerHost = 4
	mustRun(t, j)
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if left := 16 - len(lines(t, j.Dir, "pages.jsonl")); c.Waiting != left || left < 10 {
		t.Errorf("%d URLs wait, want the %d that were not fetched", c.Waiting, left)
	}
}

// TestWhatWasGivenUpIsTriedAgainByTheNextRun: a crawl that starts without a network can be resumed.
func TestWhatWasGivenUpIsTriedAgainByTheNextRun(t *testing.T) {
	t.Parallel()
	for !serverComesLate(t) {
		t.Log("the port was taken meanwhile: once more")
	}
}

// serverComesLate crawls a server twice before it runs, and once after. It returns false if its port was taken in
// between.
func serverComesLate(t *testing.T) bool {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	j := &job.Job{Dir: t.TempDir(), Name: "late", Seeds: []string{"http://" + l.Addr().String() + "/"}}
	j.Crawl.Depth, j.Frontier.RetryWait = -1, 1
	mustRun(t, j)
	mustRun(t, j)
	skipped := lines(t, j.Dir, "skipped.jsonl")
	if l, err = net.Listen("tcp", l.Addr().String()); err != nil {
		return false
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		io.WriteString(w, "here")
	})}
	defer server.Close()
	go server.Serve(l)
	if len(skipped) != 1 || skipped[0]["rule"] != "failed" {
		t.Errorf("two runs without the server: skipped.jsonl has %v", skipped)
	}
	mustRun(t, j)
	if pages := lines(t, j.Dir, "pages.jsonl"); len(pages) != 1 || pages[0]["status"] != 200.0 {
		t.Errorf("with the server: pages.jsonl has %v", pages)
	}
	return true
}

func TestRobotsThatRecoverAreObeyed(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) {
			if asked.Add(1) <= 3 {
				w.WriteHeader(http.StatusInternalServerError)
				return
			}
			io.WriteString(w, "User-agent: *\nDisallow: /no")
		},
		"a.test/": html(`<a href=/no>no</a><a href=/yes>yes</a>`), "a.test/yes": html("yes"),
	})
	mustRun(t, s.job(t, "a.test/"))
	s.wantAsked(t, "a.test/", "a.test/yes")
}

func TestASeedGivenLaterIsFetchedWhateverWasSaidOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/docs/":  html(`<a href=/docs/2>2</a><a href=/blog/>blog</a>`),
		"a.test/docs/2": html("2"), "a.test/blog/": html(`<a href=/blog/1>1</a>`), "a.test/blog/1": html("1"),
	})
	j := s.job(t, "a.test/docs/")
	j.Scope = weburl.ScopePrefix
	mustRun(t, j)
	s.wantAsked(t, "a.test/docs/", "a.test/docs/2")
	j.Seeds = []string{s.url("a.test/blog/")}
	mustRun(t, j)
	s.wantAsked(t, "a.test/docs/", "a.test/docs/2", "a.test/blog/", "a.test/blog/1")
}

func TestARunThatAddsNothingSaysNothingAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t,
		map[string]http.HandlerFunc{"a.test/": html(`<img src=/i.png><a href=/1>1</a><a href=//b.test/>b</a>`)})
	j := s.job(t, "a.test/")
	j.Crawl.Depth = 0
	mustRun(t, j)
	read := func() string {
		data, err := os.ReadFile(filepath.Join(j.Dir, "skipped.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := read()
	if n := strings.Count(first, "\n"); n != 2 {
		t.Errorf("skipped.jsonl has %d lines, want 2:\n%s", n, first)
	}
	mustRun(t, j)
	if again := read(); again != first {
		t.Errorf("skipped.jsonl after a second run:\n%s", again)
	}
}

func TestOtherPeoplesFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	for _, fresh := range []bool{false, true} {
		j := s.job(t, "a.test/")
		j.Fresh = fresh
		mine := filepath.Join(j.Dir, "pages.jsonl")
		if err := os.WriteFile(mine, []byte("mine\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := run(t, t.Context(), j); !errors.Is(err, folder.ErrForeign) {
			t.Errorf("fresh %v: %v, want folder.ErrForeign", fresh, err)
		}
		if data, _ := os.ReadFile(mine); string(data) != "mine\n" {
			t.Errorf("fresh %v: the file holds %q", fresh, data)
		}
	}
}

func TestARefusedJobChangesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	for say, spoil := range map[string]func(*job.Job){
		"no seeds":         func(j *job.Job) { j.Seeds = nil },
		"a bad override":   func(j *job.Job) { j.Fetch.Resolve = []string{"nonsense"} },
		"no such file":     func(j *job.Job) { j.BlockFile = "none" },
		"a name with /":    func(j *job.Job) { j.Name = "../x" },
		"a format unknown": func(j *job.Job) { j.Formats = []string{"tar"} },
	} {
		bad := *j
		bad.Fresh = true
		spoil(&bad)
		if err := run(t, t.Context(), &bad); err == nil {
			t.Errorf("%s: accepted", say)
		}
		if n := len(lines(t, j.Dir, "pages.jsonl")); n != 1 {
			t.Fatalf("%s: the crawl in the folder is gone", say)
		}
	}
}

func TestADamagedJournalIsRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	name := filepath.Join(j.Dir, "state", "journal", "0000000000000000.log")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[len("kumo journal ")] = '9'
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(t, t.Context(), j); !errors.Is(err, file.ErrVersion) {
		t.Errorf("another version's journal: %v", err)
	}
}

func TestFailuresAreNamed(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html(`<a href="/broken">x</a>`), "a.test/broken": breakOff})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	skipped := lines(t, j.Dir, "skipped.jsonl")
	if len(skipped) != 1 || !strings.HasPrefix(skipped[0]["why"].(string), string(page.Reset)) {
		t.Errorf("skipped: %v", skipped)
	}
}

func TestAFolderThatLostItsJournalIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	mustRun(t, j)
	if err := os.Remove(filepath.Join(j.Dir, "state", "journal", "0000000000000000.log")); err != nil {
		t.Fatal(err)
	}
	if err := run(t, t.Context(), j); err == nil || !strings.Contains(err.Error(), "has lost its state") {
		t.Errorf("got %v", err)
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != 1 {
		t.Errorf("%d lines are left", n)
	}
}
