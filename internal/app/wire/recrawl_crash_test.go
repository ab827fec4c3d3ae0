package wire

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
)

// TestRecrawlsSurviveCrashes kills the recrawl of a whole crawl repeatedly. At the end, every page was visited again,
// and is listed once for it.
func TestRecrawlsSurviveCrashes(t *testing.T) {
	t.Parallel()
	for seed, end := crashSeeds(2, 6); seed < min(6, end); seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			cfg := synthweb.Clean(seed, 8, 200)
			cfg.MedianSize = 1 << 10
			s := jobtest.Serve(t, cfg)
			j := jobtest.For(s, t.TempDir())
			now := time.Now()
			j.Crawl.Now = func() time.Time { return now }
			j.Crawl.Recrawl.Intervals = []policy.Interval{policy.DefaultInterval()}
			mustRun(t, j)
			pages := len(lines(t, j.Dir, "pages.jsonl"))
			now = now.Add(15 * 24 * time.Hour) // pages that were gone are visited after twice the time
			j.Crawl.Checkpoint, j.Crawl.Commit, j.WARCSize = 1, 5*time.Millisecond, 64<<10
			ends := livesUntilDone(t, j, rand.New(rand.NewPCG(seed, 2)))
			t.Logf("%v", ends)
			wantEachAgain(t, j, pages)
		})
	}
}

func livesUntilDone(t *testing.T, j *job.Job, dice *rand.Rand) map[string]int {
	t.Helper()
	ends := map[string]int{}
	for runs := 1; runs <= maxRuns; runs++ {
		end, err := oneLife(t, j, dice)
		if err != nil {
			t.Fatalf("run %d, %s: %v", runs, end, err)
		}
		if wantVerified(t, j.Dir); t.Failed() {
			t.Fatalf("after run %d, %s", runs, end)
		}
		if ends[end]++; end == "done" {
			return ends
		}
	}
	t.Fatalf("it does not get on: %v", ends)
	return nil
}

func wantEachAgain(t *testing.T, j *job.Job, pages int) {
	t.Helper()
	first, again := map[any]int{}, map[any]int{}
	for _, l := range lines(t, j.Dir, "pages.jsonl") {
		if l["recrawl"] == nil {
			first[l["url"]]++
		} else {
			again[l["url"]]++
		}
	}
	for url := range first {
		if first[url] != 1 || again[url] != 1 {
			t.Errorf("%v is listed %d times as visited and %d times as visited again", url, first[url], again[url])
		}
	}
	if len(first) != pages || len(again) != pages {
		t.Errorf("%d pages were visited, and %d again, of %d", len(first), len(again), pages)
	}
	if db, ok := seenOf(t, j); ok {
		for e, err := range db.Scan("") {
			if err != nil || e.Waits() {
				t.Errorf("%+v waits still (%v)", e, err)
			}
		}
	}
}
