package wire

import (
	"errors"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/settings"
	"kumo/internal/base/vfs"
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/seen"
)

// A telling disk reports each checkpoint of the frontier.
type telling struct {
	vfs.FS
	checkpoints chan struct{}
}

func (d *telling) Rename(from, to string) error {
	err := d.FS.Rename(from, to)
	if filepath.Dir(to) == filepath.Dir(from) && filepath.Base(filepath.Dir(to)) == "frontier" {
		select {
		case d.checkpoints <- struct{}{}:
		default: // more are not needed
		}
	}
	return err
}

// TestCheckpoints: checkpoints are written all the time, and undecided URLs are decided by merges. Some visits last
// until the next checkpoint, so that there are three during the crawl, however fast the machine.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 10, 800))
	j := jobtest.For(s, t.TempDir())
	j.Crawl.Checkpoint = 1
	disk := &telling{vfs.OS, make(chan struct{}, 3)}
	var visits atomic.Int64
	j.Listener.Visited = func(*page.Record) {
		if n := visits.Add(1); n%100 == 0 && n <= 300 {
			<-disk.checkpoints
		}
	}
	c, err := open(t.Context(), j, disk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if db := c.Views.Seen.(*seen.DB); db.Stats().Merges < 3 || db.Len() == 0 {
		t.Errorf("%+v", db.Stats())
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	score := jobtest.WantPerfect(t, s)
	c, err = Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Waiting != 0 || c.Known < score.Truth || c.Stats.Pages() != int64(score.Truth) {
		t.Errorf("opened again: %d wait, %d are known, %d were answered of %d", c.Waiting, c.Known, c.Stats.Pages(),
			score.Truth)
	}
	if len(c.Views.Note) == 0 {
		t.Error("there is no checkpoint")
	}
}

// A roomy disk reports a configured amount of free space.
type roomy struct {
	vfs.FS
	free atomic.Uint64
}

func (d *roomy) Free(string) (uint64, error) { return d.free.Load(), nil }

func TestNothingIsFetchedWhileTheDiskIsNearlyFull(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 3, 60))
	j := jobtest.For(s, t.TempDir())
	j.Crawl.MinFree, j.Crawl.DiskCheckInterval = 1000, time.Millisecond
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
	c, err := open(t.Context(), j, disk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	jobtest.WantPerfect(t, s)
}

// An ebbing disk has no free space for two hundred queries, from some time on.
type ebbing struct {
	vfs.FS
	looks atomic.Int64 // remaining queries without space
}

func (d *ebbing) Free(string) (uint64, error) {
	if d.looks.Add(-1) >= 0 {
		return 999, nil
	}
	d.looks.Store(0)
	return 1000, nil
}

// Workers that wait for a host when the crawl is paused do not fetch from it.
func TestAPauseHoldsForHostsThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(1, 6, 120))
	j := jobtest.For(s, t.TempDir())
	j.Frontier.Delay = 10 * time.Millisecond
	j.Crawl.MinFree, j.Crawl.DiskCheckInterval = 1000, time.Millisecond
	disk := &ebbing{FS: vfs.OS}
	var visits, pauses atomic.Int64
	var paused atomic.Bool
	var mu sync.Mutex
	during := 0 // visits that ended during the pause
	j.Listener = crawl.Listener{
		Paused:  func(uint64) { paused.Store(true); pauses.Add(1) },
		Resumed: func(uint64) { paused.Store(false) },
		Visited: func(*page.Record) {
			if visits.Add(1) == 20 {
				disk.looks.Store(200)
			}
			if mu.Lock(); paused.Load() {
				during++
			}
			mu.Unlock()
		},
	}
	c, err := open(t.Context(), j, disk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if pauses.Load() == 0 || during > 6 {
		t.Errorf("%d pauses, and %d visits ended in them, more than hosts can have had under way", pauses.Load(), during)
	}
	jobtest.WantPerfect(t, s)
}

// A run does not change files of formats that it does not write.
func TestFormatsMayChangeBetweenRuns(t *testing.T) {
	t.Parallel()
	s := jobtest.Serve(t, synthweb.Clean(5, 5, 100))
	j := jobtest.For(s, t.TempDir())
	for i, formats := range [][]string{{"warc", "jsonl"}, {"warc"}, {"warc", "jsonl"}} {
		k := *j
		// recorded in each WARC file
		k.Formats, k.Settings = formats, []settings.Setting{{Key: "format", Values: formats}}
		k.Crawl.Pages = int64(20 * (i + 1))
		if err := run(t, t.Context(), &k); !errors.Is(err, policy.ErrLimit) {
			t.Fatal(err)
		}
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != 40 {
		t.Errorf("%d lines, want 40", n)
	}
}

// A URL at an abandoned host counts as failed once, however many runs try it.
func TestForsakenURLsAreCountedOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]http.HandlerFunc{"a.test/": html("a")})
	j := s.job(t, "a.test/")
	j.Crawl.Tries = 1
	s.Close()
	for i := range 3 {
		c, err := Open(t.Context(), j)
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
