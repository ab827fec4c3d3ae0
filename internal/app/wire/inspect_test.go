package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/inspect"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/seen"
)

// background runs a job until the test ends it.
func background(t *testing.T, j *job.Job) (end func() error) {
	t.Helper()
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(ctx)
		done <- errors.Join(err, c.Close())
	}()
	return func() error { cancel(); return <-done }
}

func openTestLook(t *testing.T, j *job.Job) *inspect.View {
	t.Helper()
	l, err := Inspect(t.Context(), j.Dir, func() (*job.Job, error) { job := *j; return &job, nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Queries at full speed, during a crawl that writes checkpoints all the time, return sensible results, and the crawl
// fetches all pages.
func TestLooksWhileACrawlRuns(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 10, 300))
	j := jobtest.For(s, t.TempDir())
	j.Crawl.Checkpoint = 1
	met := make(chan string, 1000)
	j.Listener.Visited = func(r *page.Record) {
		select {
		case met <- r.URL:
		default:
		}
	}
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := c.Run(t.Context())
		done <- err
	}()
	looks := 0
	for url := range met {
		ended, err := lookAround(t, c, j, url)
		if err != nil {
			t.Error(err)
		}
		if looks++; ended || looks == 60 || t.Failed() {
			break
		}
	}
	if err := errors.Join(<-done, c.Close()); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d looks", looks)
	jobtest.WantPerfect(t, s)
	l := openTestLook(t, j)
	defer l.Close()
	n := 0
	for k, err := range l.Seen(t.Context(), "", 1_000_000) { // without a running crawl, the sequence is finite
		if err != nil {
			t.Fatal(err)
		}
		if n++; n%20 != 0 {
			continue
		}
		if x, err := l.Explain(t.Context(), k.URL); err != nil || x.Fate == inspect.Unaccounted || x.Fate == inspect.Waiting {
			t.Fatalf("%s: %+v, %v", k.URL, x, err)
		}
	}
}

// lookAround makes one query of each kind. It reports whether the crawl has ended in the meantime.
func lookAround(t *testing.T, c *session.Session, j *job.Job, url string) (ended bool, err error) {
	client, err := inspect.Dial(t.Context(), c.Folder.Path(folder.EndpointName))
	if errors.Is(err, inspect.ErrUnreachable) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	l := inspect.NewView(client, j.Dir, vfs.OS, true, client.Close)
	defer l.Close()
	x, err := l.Explain(t.Context(), url)
	if errors.Is(err, inspect.ErrUnreachable) {
		return true, nil
	}
	if err != nil || x.Page == nil || x.Page.Status == 0 || x.Robots == nil {
		return false, fmt.Errorf("%s was visited, and a look says %+v: %w", url, x, err)
	}
	for h, err := range l.Hosts(t.Context(), 5) {
		if err != nil {
			return errors.Is(err, inspect.ErrUnreachable), nil
		}
		for it, err := range l.Queue(t.Context(), h.Key, 5) {
			if err != nil {
				return errors.Is(err, inspect.ErrUnreachable), nil
			}
			if !strings.Contains(it.URL, h.Key) {
				return false, fmt.Errorf("%s waits at %s", it.URL, h.Key)
			}
			if x, err := l.Explain(t.Context(), it.URL); err == nil && x.Fate == inspect.Unknown {
				return false, fmt.Errorf("%s waited: %+v", it.URL, x)
			}
		}
	}
	n, last := 0, ""
	for k, err := range l.Seen(t.Context(), "", 1000) {
		if err != nil {
			return errors.Is(err, inspect.ErrUnreachable), nil
		}
		if n++; k.URL <= last {
			return false, fmt.Errorf("%s after %s", k.URL, last)
		}
		last = k.URL
	}
	return false, nil
}

// An undecided URL waits for the next merge, and a query says so.
func TestALookAtWhatAMergeDecides(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/":     html(`<a href="/later">later</a> <a href="/held">held</a>`),
		"a.test/held": func(_ http.ResponseWriter, r *http.Request) { close(asked); <-r.Context().Done() },
	})
	j := s.job(t, "a.test/")
	db, err := seen.Open(vfs.OS, filepath.Join(j.Dir, "state", "seen"), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	// Only the filter of the disk part contains it.
	db.UpdateMeta(s.url("a.test/later"), seen.Meta{Modified: time.Unix(1, 0)})
	db.Freeze(0)
	if err := errors.Join(db.Merge(t.Context(), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
	j.Crawl.Grace = time.Millisecond
	end := background(t, j)
	<-asked
	l := openTestLook(t, j)
	x, err := l.Explain(t.Context(), s.url("a.test/later"))
	if err != nil || x.Fate != inspect.Undecided || x.From != s.url("a.test/") || x.Merge.Rule != "" {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = l.Explain(t.Context(), s.url("a.test/held")); err != nil || x.Fate != inspect.InFlight {
		t.Errorf("%+v, %v", x, err)
	}
	if err := errors.Join(l.Close(), end()); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// While a crawl has the lock but no endpoint, at its start and end, a query waits a little and then reports this.
func TestALookAtACrawlThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	c, err := Open(t.Context(), j) // without running it
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond) // shorter than the query's own timeout
	defer cancel()
	_, err = Inspect(ctx, j.Dir, func() (*job.Job, error) { job := *j; return &job, nil })
	if !errors.Is(err, folder.ErrLocked) || !strings.Contains(err.Error(), "just starting or ending") {
		t.Errorf("error %v", err)
	}
	if err := os.WriteFile(c.Folder.Path(folder.EndpointName),
		[]byte(`{"version":1,"host":"elsewhere","address":"127.0.0.1:1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = Inspect(t.Context(), j.Dir, func() (*job.Job, error) { job := *j; return &job, nil })
	if !errors.Is(err, inspect.ErrOtherMachine) || !strings.Contains(err.Error(), "on elsewhere") {
		t.Errorf("error %v", err)
	}
}

// The rules of robots.txt are stored in a line of the state, for queries while the crawl is not running.
func TestALookKnowsWhatRobotsSaid(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{
		"a.test/robots.txt": redirect("http://b.test:PORT/rules"),
		"b.test/rules":      html("User-agent: *\n\nAllow: /a\nDisallow: /\n"),
		"b.test/robots.txt": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"a.test/a":          html(`<a href="/no">no</a>`),
		"b.test/":           html("b"),
	})
	j := s.job(t, "a.test/a")
	j.Seeds = append(j.Seeds, s.url("b.test/"))
	j.Formats = []string{"jsonl"}
	mustRun(t, j)
	l := openTestLook(t, j)
	defer l.Close()
	for path, want := range map[string]inspect.Robots{
		"a.test/a":  {Allowed: true, Line: 3, Text: "Allow: /a", File: s.url("b.test/rules")},
		"a.test/no": {Line: 4, Text: "Disallow: /", File: s.url("b.test/rules")},
		"b.test/":   {Allowed: true, Text: "robots.txt: status 404", File: s.url("b.test/robots.txt")},
	} {
		x, err := l.Explain(t.Context(), s.url(path))
		if err != nil || x.Robots == nil {
			t.Fatalf("%s: %+v, %v", path, x, err)
		}
		if x.Robots.Time = (time.Time{}); !reflect.DeepEqual(*x.Robots, want) {
			t.Errorf("%s: %+v, want %+v", path, *x.Robots, want)
		}
	}
}

// Concurrent queries do not change the folder of a killed crawl, and ignore uncommitted data.
func TestLooksOnlyRead(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html(`<a href="/b">b</a>`), "a.test/b": html("b")})
	j := s.job(t, "a.test/")
	j.Crawl.Pages = 1
	if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"pages.jsonl":            fmt.Sprintf(`{"url":%q,"status":200}`+"\n", s.url("a.test/b")),
		"skipped.jsonl":          fmt.Sprintf(`{"url":%q,"rule":"failed"}`+"\n", s.url("a.test/b")),
		"warc/late.warc.gz.open": "torn",
		folder.EndpointName:      "{",
		firstJournal(t, j.Dir):   "torn",
	} {
		appendTo(t, filepath.Join(j.Dir, filepath.FromSlash(name)), text)
	}
	before := contentsOf(t, j.Dir)
	l, beside := openTestLook(t, j), openTestLook(t, j)
	wantVerified(t, j.Dir)
	x, err := l.Explain(t.Context(), s.url("a.test/b"))
	if err != nil || x.Fate != inspect.Waiting || x.Page != nil || x.Skipped != nil {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err = beside.Explain(t.Context(), s.url("a.test/")); err != nil || x.Fate != inspect.Fetched ||
		x.Page.WARC == "" {
		t.Errorf("%+v, %v", x, err)
	}
	if err := errors.Join(l.Close(), beside.Close()); err != nil {
		t.Error(err)
	}
	if after := contentsOf(t, j.Dir); !maps.Equal(before, after) {
		t.Errorf("before %q\nafter %q", before, after)
	}
	j.Crawl.Pages = 0
	mustRun(t, j)
}

func firstJournal(t *testing.T, dir string) string {
	names, err := vfs.OS.List(filepath.Join(dir, "state", "journal"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%v, %v", names, err)
	}
	return "state/journal/" + names[0]
}

func appendTo(t *testing.T, name, text string) {
	t.Helper()
	f, err := vfs.OS.Append(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.Write([]byte(text)); errors.Join(err, f.Close()) != nil {
		t.Fatal(err)
	}
}
