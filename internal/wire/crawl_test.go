package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/crawl"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/synthweb"
	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// serve serves a web until the test ends.
func serve(t *testing.T, cfg synthweb.Config) *synthweb.Server {
	t.Helper()
	s, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// jobFor is a quick crawl of all that the server has.
func jobFor(t *testing.T, s *synthweb.Server) *Job {
	j := &Job{Dir: t.TempDir(), Name: "test", Seeds: s.SeedURLs(), Scope: weburl.ScopeAny}
	j.Crawl.Depth = -1
	j.Fetch.AllowPrivate, j.Fetch.DNSServer = true, s.DNS()
	j.Fetch.ConnectTimeout, j.Fetch.Timeout = 5*time.Second, 5*time.Second // a loaded machine takes its time
	j.Frontier.RetryWait = 10 * time.Millisecond
	return j
}

// run runs a job as a process of its own would: opens it, crawls, closes it.
func run(t *testing.T, ctx context.Context, j *Job) error {
	t.Helper()
	c, err := Open(j)
	if err != nil {
		return err
	}
	_, err = c.Run(ctx)
	return errors.Join(err, c.Close())
}

// wantWhole checks a score: all fetched, nothing twice, nothing forbidden.
func wantWhole(t *testing.T, s *synthweb.Server) synthweb.Score {
	t.Helper()
	score := s.Score()
	if !score.Perfect() {
		t.Errorf("the servers saw:\n%s", score)
	}
	return score
}

func TestACrawlFetchesAllThereIs(t *testing.T) {
	s := serve(t, synthweb.Clean(1, 20, 600))
	j := jobFor(t, s)
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	score := wantWhole(t, s)
	if score.MostInFlight.Value != 1 || score.MostOpen.Value != 1 {
		t.Errorf("%d requests and %d connections at once to one host", score.MostInFlight.Value, score.MostOpen.Value)
	}
	if got := lines(t, j.Dir, "pages.jsonl"); len(got) != score.Truth {
		t.Errorf("pages.jsonl has %d lines, want %d", len(got), score.Truth)
	}
}

func TestABadWebIsCrawledToItsEnd(t *testing.T) {
	cfg := synthweb.Messy(2, 30, 900)
	cfg.RetryAfter, cfg.CrawlDelay, cfg.Slow = time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	s := serve(t, cfg)
	j := jobFor(t, s)
	j.Crawl.PagesPerHost = 1000 // calendars have no end
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	score := s.Score()
	if score.Missing != 0 || score.Repeats != 0 || score.Forbidden != 0 || score.BeforeRobots != 0 || score.Hasty != 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
}

func TestDelayIsKept(t *testing.T) {
	s := serve(t, synthweb.Clean(3, 10, 60))
	j := jobFor(t, s)
	j.Frontier.Delay = 100 * time.Millisecond
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if score := wantWhole(t, s); score.LeastGap.Value < j.Frontier.Delay {
		t.Errorf("a gap of %v at %s, want %v", score.LeastGap.Value, score.LeastGap.Host, j.Frontier.Delay)
	}
}

func TestHostsAtOneAddressTakeTurns(t *testing.T) {
	s, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(3, 6, 6)), synthweb.ServeOptions{DNS: true, Addresses: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j := jobFor(t, s)
	j.Frontier.AddrDelay = 20 * time.Millisecond
	start := time.Now()
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	score := wantWhole(t, s)
	if least := time.Duration(score.Requests-2) * j.Frontier.AddrDelay; time.Since(start) < least {
		t.Errorf("%d requests to one address took %v, want at least %v", score.Requests, time.Since(start), least)
	}
}

func TestTheSameJobGoesOn(t *testing.T) {
	s := serve(t, synthweb.Clean(4, 20, 600))
	j := jobFor(t, s)
	var pages atomic.Int64
	for runs := 1; ; runs++ {
		ctx, stop := context.WithCancel(t.Context())
		pages.Store(0)
		j.Listener = crawl.Listener{Visited: func(*page.Record) {
			if pages.Add(1) == 100 {
				stop()
			}
		}}
		err := run(t, ctx, j)
		stop()
		if err == nil {
			t.Logf("%d runs", runs)
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	score := wantWhole(t, s)
	if got := lines(t, j.Dir, "pages.jsonl"); len(got) != score.Truth {
		t.Errorf("pages.jsonl has %d lines, want %d", len(got), score.Truth)
	}
	if open, _ := filepath.Glob(filepath.Join(j.Dir, "warc", "*.open")); len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestLimitsAreNotOvershot(t *testing.T) {
	s := serve(t, synthweb.Clean(5, 20, 600))
	j := jobFor(t, s)
	for _, pages := range []int64{1, 50, 51} {
		j.Crawl.Pages = pages
		if err := run(t, t.Context(), j); !errors.Is(err, crawl.ErrLimit) {
			t.Fatalf("limit %d: %v, want ErrLimit", pages, err)
		}
		if got := lines(t, j.Dir, "pages.jsonl"); int64(len(got)) != pages {
			t.Errorf("limit %d: %d pages", pages, len(got))
		}
	}
	j.Crawl.Pages = 0
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, s)
}

func TestPagesPerHost(t *testing.T) {
	s := serve(t, synthweb.Clean(5, 10, 300))
	j := jobFor(t, s)
	j.Crawl.PagesPerHost = 7
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	perHost := map[string]int{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		u, err := weburl.Parse(l["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		perHost[u.Host()]++
	}
	for host, n := range perHost {
		if n > 7 {
			t.Errorf("%s: %d pages", host, n)
		}
	}
	if len(perHost) == 0 {
		t.Error("no pages")
	}
}

// TestAFullDiskLosesNothing lets the disk fill up again and again, and cuts what was written after the last commit.
func TestAFullDiskLosesNothing(t *testing.T) {
	s := serve(t, synthweb.Clean(6, 10, 300))
	j := jobFor(t, s)
	for runs := 1; ; runs++ {
		disk := vfs.NewFaulty(vfs.OS)
		disk.SetRoom(int64(runs) << 19) // a fast machine fills little room before its first commit
		c, err := open(j, disk)
		if err == nil {
			_, err = c.Run(t.Context())
			c.Close()
		}
		if err == nil {
			t.Logf("%d runs", runs)
			break
		}
		if !vfs.IsFull(err) {
			t.Fatal(err)
		}
		if runs > 100 {
			t.Fatal("it does not get on")
		}
	}
	score := s.Score()
	if score.Missing != 0 || score.Forbidden != 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
	urls := map[string]bool{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		if url := l["url"].(string); urls[url] {
			t.Errorf("%s is listed twice", url)
		} else {
			urls[url] = true
		}
	}
	if len(urls) != score.Truth {
		t.Errorf("pages.jsonl has %d URLs, want %d", len(urls), score.Truth)
	}
}

func TestASecondKumoIsRefused(t *testing.T) {
	s := serve(t, synthweb.Clean(7, 1, 5))
	j := jobFor(t, s)
	c, err := Open(j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := Open(j); !errors.Is(err, ErrLocked) {
		t.Errorf("the second: %v, want ErrLocked", err)
	}
}

func TestWhatIsLeftOutIsSaidOnce(t *testing.T) {
	s := serve(t, synthweb.Clean(8, 10, 400))
	j := jobFor(t, s)
	j.Crawl.Depth = 3
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	fetched, rules := map[string]bool{}, map[string]int{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		fetched[l["url"].(string)] = true
	}
	skipped := map[string]bool{}
	for _, l := range lines(t, j.Dir, "skipped.jsonl") {
		url := l["url"].(string)
		if skipped[url] || fetched[url] {
			t.Errorf("%s: skipped twice %v, fetched %v", url, skipped[url], fetched[url])
		}
		skipped[url] = true
		rules[l["rule"].(string)]++
	}
	for _, rule := range []string{"depth", "embed", "robots"} {
		if rules[rule] == 0 {
			t.Errorf("no URL was left out by %s: %v", rule, rules)
		}
	}
}

func lines(t *testing.T, dir, name string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]any
	for i, l := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
		var m map[string]any
		if err := json.Unmarshal([]byte(l), &m); err != nil {
			t.Fatal(fmt.Errorf("%s line %d: %w", name, i+1, err))
		}
		all = append(all, m)
	}
	return all
}

// TestCheckpoints: all the time something is brought to the disk, and what seen is not sure of is decided by merges.
func TestCheckpoints(t *testing.T) {
	s := serve(t, synthweb.Clean(1, 10, 800))
	j := jobFor(t, s)
	j.Crawl.Checkpoint = 1
	c, err := Open(j)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if db := c.views.Seen.(*seen.DB); db.Stats().Merges < 3 || db.Len() == 0 {
		t.Errorf("%+v", db.Stats())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	score := wantWhole(t, s)
	c, err = Open(j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Waiting != 0 || c.Known < score.Truth || c.Stats.Pages() != int64(score.Truth) {
		t.Errorf("opened again: %d wait, %d are known, %d were answered of %d", c.Waiting, c.Known, c.Stats.Pages(), score.Truth)
	}
	if len(c.views.Note) == 0 {
		t.Error("there is no checkpoint")
	}
}

// A roomy disk says how much room it has.
type roomy struct {
	vfs.FS
	free atomic.Uint64
}

func (d *roomy) Free(string) (uint64, error) { return d.free.Load(), nil }

func TestNothingIsFetchedWhileTheDiskIsNearlyFull(t *testing.T) {
	s := serve(t, synthweb.Clean(1, 3, 60))
	j := jobFor(t, s)
	j.Crawl.MinFree, j.Crawl.LookSpace = 1000, time.Millisecond
	disk := &roomy{FS: vfs.OS}
	disk.free.Store(999)
	var resumed atomic.Bool
	j.Listener = crawl.Listener{
		Paused:  func(uint64) { disk.free.Store(1000) },
		Resumed: func(uint64) { resumed.Store(true) },
		Visited: func(*page.Record) {
			if !resumed.Load() {
				t.Error("fetched without room")
			}
		},
	}
	c, err := open(j, disk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	wantWhole(t, s)
}

// What a run does not write, it leaves as the run before has.
func TestFormatsMayChangeBetweenRuns(t *testing.T) {
	s := serve(t, synthweb.Clean(5, 5, 100))
	j := jobFor(t, s)
	for i, formats := range [][]string{{"warc", "jsonl"}, {"warc"}, {"warc", "jsonl"}} {
		k := *j
		k.Formats = formats
		k.Crawl.Pages = int64(20 * (i + 1))
		if err := run(t, t.Context(), &k); !errors.Is(err, crawl.ErrLimit) {
			t.Fatal(err)
		}
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != 40 {
		t.Errorf("%d lines, want 40", n)
	}
}

// A URL that lay at a host that is given up has failed once, however many runs try it.
func TestForsakenURLsAreCountedOnce(t *testing.T) {
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	j.Crawl.Tries = 1
	s.Close()
	for i := range 3 {
		c, err := Open(j)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if failed := c.Stats.Totals().Failed; failed != 1 {
			t.Errorf("run %d: %d have failed", i+1, failed)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
