package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// run runs a job like a process of its own: it opens, runs and closes the crawl.
func run(t *testing.T, ctx context.Context, j *job.Job) error {
	t.Helper()
	c, err := Open(t.Context(), j)
	if err != nil {
		return err
	}
	_, err = c.Run(ctx)
	err = errors.Join(err, c.Close())
	if j.Dir != "" {
		wantVerified(t, j.Dir)
	}
	return err
}

func TestACrawlFetchesAllThereIs(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 20, 600))
	j := jobtest.For(s, t.TempDir())
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	score := jobtest.WantPerfect(t, s)
	if score.MostInFlight.Value != 1 || score.MostOpen.Value != 1 {
		t.Errorf("%d requests and %d connections at once to one host", score.MostInFlight.Value, score.MostOpen.Value)
	}
	if got := lines(t, j.Dir, "pages.jsonl"); len(got) != score.Truth {
		t.Errorf("pages.jsonl has %d lines, want %d", len(got), score.Truth)
	}
}

func TestABadWebIsCrawledToItsEnd(t *testing.T) {
	t.Parallel()
	cfg := synthweb.Messy(2, 30, 900)
	cfg.RetryAfter, cfg.CrawlDelay, cfg.Slow = time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
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
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(3, 10, 60))
	j := jobtest.For(s, t.TempDir())
	j.Frontier.Delay = 100 * time.Millisecond
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if score := jobtest.WantPerfect(t, s); score.LeastGap.Value < j.Frontier.Delay {
		t.Errorf("a gap of %v at %s, want %v", score.LeastGap.Value, score.LeastGap.Host, j.Frontier.Delay)
	}
}

func TestHostsAtOneAddressTakeTurns(t *testing.T) {
	t.Parallel()
	s, err := synthweb.Serve(t.Context(), synthweb.New(synthweb.Clean(3, 6, 6)),
		synthweb.ServeOptions{DNS: true, Addresses: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j := jobtest.For(s, t.TempDir())
	j.Frontier.AddrDelay = 20 * time.Millisecond
	start := time.Now()
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	score := jobtest.WantPerfect(t, s)
	if least := time.Duration(score.Requests-2) * j.Frontier.AddrDelay; time.Since(start) < least {
		t.Errorf("%d requests to one address took %v, want at least %v", score.Requests, time.Since(start), least)
	}
}

func TestTheSameJobGoesOn(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(4, 20, 600))
	j := jobtest.For(s, t.TempDir())
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
	score := jobtest.WantPerfect(t, s)
	if got := lines(t, j.Dir, "pages.jsonl"); len(got) != score.Truth {
		t.Errorf("pages.jsonl has %d lines, want %d", len(got), score.Truth)
	}
	if open, _ := filepath.Glob(filepath.Join(j.Dir, "warc", "*.open")); len(open) > 0 {
		t.Errorf("left open: %v", open)
	}
}

func TestLimitsAreNotOvershot(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(5, 20, 600))
	j := jobtest.For(s, t.TempDir())
	for _, pages := range []int64{1, 50, 51} {
		j.Crawl.Pages = pages
		if err := run(t, t.Context(), j); !errors.Is(err, policy.ErrLimit) {
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
	jobtest.WantPerfect(t, s)
}

func TestPagesPerHost(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(5, 10, 300))
	j := jobtest.For(s, t.TempDir())
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

// TestBytesPerHost limits the bytes per host over two runs. A host may exceed the limit by the response in flight.
func TestBytesPerHost(t *testing.T) {
	t.Parallel()
	const bound, longest = 100_000, 400_000
	cfg := synthweb.Clean(6, 10, 300)
	cfg.MedianSize = 27 << 10
	s := jobtest.Serve(t, cfg)
	dir := t.TempDir()
	for _, pages := range []int64{40, 0} { // the first run is cut short
		j := jobtest.For(s, dir)
		j.Crawl.BytesPerHost, j.Crawl.Pages = bound, pages
		if err := run(t, t.Context(), j); err != nil && !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
	}
	perHost, full := map[string]float64{}, 0
	for _, l := range lines(t, dir, "pages.jsonl") {
		u, err := weburl.Parse(l["url"].(string))
		if err != nil {
			t.Fatal(err)
		}
		bytes, _ := l["bytes"].(float64)
		if perHost[u.Host()] >= bound {
			t.Errorf("%s: fetched after %.0f bytes", u, perHost[u.Host()])
		}
		perHost[u.Host()] += bytes
	}
	for host, n := range perHost {
		if n > bound+longest {
			t.Errorf("%s: %.0f bytes", host, n)
		}
		if n >= bound {
			full++
		}
	}
	if full == 0 {
		t.Error("no host has reached the bound")
	}
}

// TestAFullDiskLosesNothing fills the disk repeatedly, and discards uncommitted data.
func TestAFullDiskLosesNothing(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(6, 10, 300))
	j := jobtest.For(s, t.TempDir())
	for runs := 1; ; runs++ {
		disk := vfstest.NewFaulty(vfs.OS)
		disk.SetRoom(int64(runs) << 19) // a fast machine needs little space before its first commit
		c, err := open(t.Context(), j, disk)
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
	s := jobtest.Serve(t, synthweb.Clean(7, 1, 5))
	j := jobtest.For(s, t.TempDir())
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := Open(t.Context(), j); !errors.Is(err, folder.ErrLocked) {
		t.Errorf("the second: %v, want folder.ErrLocked", err)
	}
}

func TestWhatIsLeftOutIsSaidOnce(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(8, 10, 400))
	j := jobtest.For(s, t.TempDir())
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
