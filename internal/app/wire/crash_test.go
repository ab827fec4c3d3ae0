package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/content/policy"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/seen"
	"kumo/internal/state/store/storetest"
)

// TestACrawlSurvivesCrashes interrupts a crawl that writes checkpoints all the time, repeatedly: by a kill or power
// loss at any byte, by a full disk, or by a stop or limit at any page. The result equals that of an undisturbed crawl.
func TestACrawlSurvivesCrashes(t *testing.T) {
	t.Parallel()
	for seed, end := crashSeeds(2, 8); seed < end; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { crashes(t, seed) })
	}
}

// crashSeeds returns the range of seeds of the generated webs, as testmain.Seeds; KUMO_TEST_CRASHES overrides their
// number.
func crashSeeds(short, long uint64) (first, end uint64) {
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_CRASHES"), 10, 64); err == nil {
		return 0, n
	}
	return testmain.Seeds(short, long)
}

// crashWebs returns the number of crawls, or of damaged files: KUMO_TEST_CRASHES, or a few.
func crashWebs() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("KUMO_TEST_CRASHES"), 10, 64); err == nil {
		return n
	}
	return uint64(testmain.Rounds(4, 8))
}

const maxRuns = 400

func crashes(t *testing.T, seed uint64) {
	t.Parallel() // most of the time is spent waiting for hosts that do not answer
	cfg := synthweb.Clean(seed, 12, 400)
	cfg.MedianSize = 1 << 10 // makes state a large part of the written data
	cfg.Kinds[synthweb.Copy], cfg.Kinds[synthweb.Lure], cfg.Kinds[synthweb.Hop2], cfg.Kinds[synthweb.Flaky] = 100, 20, 20,
		20
	cfg.Traits[synthweb.Refused] = 1
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	dice := rand.New(rand.NewPCG(seed, 1))
	if seed%2 == 1 {
		doubt(t, j)
	}
	if seed%4 > 1 {
		j.Order = job.PageRank
	}
	ends := livesUntilDone(t, j, dice)
	score := s.Score()
	t.Logf("%v; %d repeats", ends, score.Repeats) // the crawl with undecided URLs runs after another one
	if score.Missing != 0 || score.Forbidden != 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != score.Truth {
		t.Errorf("pages.jsonl has %d URLs, want %d", n, score.Truth)
	}
	storetest.CheckConsistent(t, j.Dir)
}

// doubt makes every URL undecided, so that merges must decide.
func doubt(t *testing.T, j *job.Job) {
	t.Helper()
	job := *j
	job.Dir = t.TempDir()
	if err := run(t, t.Context(), &job); err != nil {
		t.Fatal(err)
	}
	db, err := seen.Open(vfs.OS, filepath.Join(j.Dir, "state", "seen"), seen.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines(t, job.Dir, "pages.jsonl") {
		db.UpdateMeta(l["url"].(string), seen.Meta{Status: 200}) // only the filter of the disk part contains it
	}
	db.Freeze(0)
	if err := errors.Join(db.Merge(t.Context(), nil), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// lookBefore opens the folder read-only, whatever its state, and checks that this changes nothing.
func lookBefore(t *testing.T, j *job.Job) (known, waiting int) {
	t.Helper()
	before := contentsOf(t, j.Dir)
	l, err := session.Inspect(t.Context(), j.Dir, func(f *folder.Folder) (*session.Session, error) {
		k := *j
		c, err := openShared(f, func() (*job.Job, error) { return &k, nil })
		if err == nil {
			known, waiting = c.Known, c.Waiting
		}
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	after := contentsOf(t, j.Dir)
	for _, name := range []string{"state/lock", "state/gate"} {
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		t.Error("a look has changed the folder")
	}
	return known, waiting
}

// oneLife opens the crawl and runs it until a random kind of end.
func oneLife(t *testing.T, j *job.Job, dice *rand.Rand) (end string, err error) {
	job := *j
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job.Crawl.Checkpoint = pick[int64](dice, 1, 1, 10<<10, 64<<20)
	job.Crawl.Commit = pick(dice, time.Millisecond, 5*time.Millisecond, 50*time.Millisecond)
	job.Memory = pick[int64](dice, 256<<10, 512<<10, 64<<20) // queues and known URLs spill
	job.WARCSize = pick[int64](dice, 16<<10, 64<<10, 1e9)
	disk := vfstest.NewFaulty(vfs.OS)
	var once onceEach
	defer once.judge(t)
	job.Listener.Visited = once.visited
	// Many crashes occur early: during opening, or with the first checkpoints.
	switch n := dice.Int64N(8 << 10 << (2 * dice.IntN(4))); dice.IntN(7) {
	case 0:
		job.Crawl.Grace = pick(dice, 1, time.Millisecond, 5*time.Second) // for the last checkpoint, too
		var left atomic.Int64
		left.Store(dice.Int64N(60))
		job.Listener.Visited = func(rec *page.Record) {
			once.visited(rec)
			if left.Add(-1) < 0 {
				cancel()
			}
		}
	case 1:
		known, waiting := lookBefore(t, &job)
		if c, err := Open(t.Context(), &job); err == nil { // a run that does nothing
			if c.Known != known || c.Waiting != waiting {
				t.Errorf("a look found %d known and %d waiting, the crawl %d and %d", known, waiting, c.Known, c.Waiting)
			}
			job.Crawl.Pages = c.Stats.Pages() + 1 + dice.Int64N(60)
			if err := c.Close(); err != nil {
				return "open and close", err
			}
		}
	case 2:
		end = "full disk"
		disk.SetRoom(n)
	case 3, 4:
		end = "power loss"
		disk.DieAfter(n)
	default:
		end = "kill"
		disk.DieAfter(n)
	}
	c, err := open(t.Context(), &job, disk)
	if err == nil {
		_, err = c.Run(ctx)
		err = errors.Join(err, c.Close())
	}
	switch {
	case disk.Dead():
		if end == "power loss" {
			return end, disk.PowerLoss(dice)
		}
		return end, nil
	case err == nil:
		return "done", nil
	case errors.Is(err, policy.ErrLimit):
		return "limit", nil
	case vfs.IsFull(err):
		return "full disk", nil
	case errors.Is(err, context.Canceled):
		return "stop", nil
	}
	return end, err
}

// onceEach checks that no URL is visited twice in one run.
type onceEach struct {
	mu    sync.Mutex // guards times
	times map[string]int
}

func (o *onceEach) visited(rec *page.Record) {
	dawdle()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.times == nil {
		o.times = map[string]int{}
	}
	o.times[rec.URL]++
}

func (o *onceEach) judge(t *testing.T) {
	t.Helper()
	for url, n := range o.times {
		if n > 1 {
			t.Errorf("%s was visited %d times in one life", url, n)
		}
	}
}

func pick[T any](dice *rand.Rand, of ...T) T { return of[dice.IntN(len(of))] }

// dawdle yields to other goroutines: a checkpoint may begin while a page is committed and its visit has not ended.
func dawdle() {
	for range 200 {
		runtime.Gosched()
	}
}
