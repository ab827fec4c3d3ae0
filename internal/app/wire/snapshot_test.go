package wire

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/app/session"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
)

// TestASnapshotOfALiveCrawlIsACrawl takes snapshots at random times of crawls that write checkpoints all the time, and
// close, merge and delete files. Each snapshot is consistent, and can be resumed to the crawl's end.
func TestASnapshotOfALiveCrawlIsACrawl(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	for range max(crashWebs()/4, 1) {
		seed := rand.Uint64()
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { snapshots(t, seed) })
	}
}

func snapshots(t *testing.T, seed uint64) {
	t.Parallel()
	dice := rand.New(rand.NewPCG(seed, 0))
	cfg := synthweb.Clean(seed, 12, 400)
	cfg.MedianSize = 1 << 10
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.Crawl.Checkpoint, j.Crawl.Commit = pick[int64](dice, 1, 4<<10), time.Millisecond
	j.Memory = pick[int64](dice, 256<<10, 64<<20)
	j.WARCSize = pick[int64](dice, 16<<10, 64<<10)
	if dice.IntN(2) == 0 {
		doubt(t, j)
	}
	at := map[int64]bool{}
	for range 6 {
		at[1+dice.Int64N(380)] = true
	}
	var visits atomic.Int64
	var all sync.WaitGroup
	var mu sync.Mutex
	var made []string
	base := t.TempDir()
	live := *j
	live.Listener = crawl.Listener{Visited: func(*page.Record) {
		n := visits.Add(1)
		if !at[n] {
			return
		}
		began := make(chan struct{})
		all.Go(func() {
			target := filepath.Join(base, fmt.Sprint(n))
			var once sync.Once
			err := session.Snapshot(t.Context(), j.Dir, target, func(inspect.Copied) { once.Do(func() { close(began) }) })
			once.Do(func() { close(began) })
			if err != nil {
				t.Errorf("at visit %d: %v", n, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			made = append(made, target)
		})
		if n%2 == 0 {
			<-began // the crawl may end before a snapshot is made; half of them are waited for
		}
	}}
	mustRun(t, &live)
	all.Wait()
	truth := s.Score().Truth
	for _, target := range made {
		wantVerified(t, target)
		job := *j
		job.Dir = target
		if err := run(t, t.Context(), &job); err != nil {
			t.Errorf("%s: %v", target, err)
			continue
		}
		if n := len(lines(t, target, "pages.jsonl")); n != truth {
			t.Errorf("%s has %d of %d pages", target, n, truth)
		}
	}
	wantVerified(t, j.Dir)
	if left, _ := filepath.Glob(filepath.Join(base, "*.part")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestSnapshotsThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := stopped(t)
	target := filepath.Join(t.TempDir(), "there")
	if err := session.Snapshot(t.Context(), dir, target, func(inspect.Copied) {}); err != nil {
		t.Fatal(err)
	}
	wantVerified(t, target)
	if err := session.Snapshot(t.Context(), dir, target, func(inspect.Copied) {}); !advice.IsUsage(err) {
		t.Errorf("into a folder that is there: %v", err)
	}
	if err := session.Snapshot(t.Context(), t.TempDir(), target+"2", func(inspect.Copied) {}); !advice.IsUsage(err) {
		t.Errorf("of what is no crawl: %v", err)
	}
	if err := session.Snapshot(t.Context(), dir, filepath.Join(dir, "no", "such", "folder"),
		func(inspect.Copied) {}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("into a folder that cannot be made: %v", err)
	}
}
