package wire

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kumo/internal/app/job"
	"kumo/internal/base/vfs"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/jobtest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/store/storetest"
)

// TestARealDiskIsFull crawls into a small file system that another program fills: first completely, which ends the run,
// then so far that the crawl pauses. When there is space again it continues, and nothing is lost. Mounting requires
// root.
func TestARealDiskIsFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skipf("NOT TESTED: a full disk of the system's own: mounting a tmpfs takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	cfg := synthweb.Clean(3, 8, 300)
	cfg.Latency = 2 * time.Millisecond
	s := jobtest.Serve(t, cfg)
	j := jobtest.For(s, t.TempDir())
	j.Dir, j.Crawl.Commit, j.Memory = filepath.Join(dir, "crawl"), 5*time.Millisecond, 256<<10
	full := 0
	for left := 64 << 10; left <= 640<<10; left *= 2 {
		remove := fill(t, dir, left)
		switch err := run(t, t.Context(), j); {
		case vfs.IsFull(err):
			full++
		case err != nil:
			t.Fatalf("with room for %d bytes: %v", left, err)
		}
		remove()
	}
	if full < 2 {
		t.Errorf("the disk was full %d times", full)
	}
	pauses(t, j, dir)
	score := s.Score()
	if score.Missing > 0 || score.Forbidden > 0 {
		t.Errorf("the servers saw:\n%s", score)
	}
	if n := len(lines(t, j.Dir, "pages.jsonl")); n != score.Truth {
		t.Errorf("pages.jsonl has %d URLs, want %d", n, score.Truth)
	}
	storetest.CheckConsistent(t, j.Dir)
}

// pauses runs a job on a nearly full disk, first until it pauses, and then to its end.
func pauses(t *testing.T, j *job.Job, dir string) {
	t.Helper()
	j.Crawl.MinFree, j.Crawl.DiskCheckInterval = 1<<20, time.Millisecond
	remove := fill(t, dir, 900<<10)
	var resumed atomic.Bool
	j.Listener = crawl.Listener{Paused: func(uint64) { remove() }, Resumed: func(uint64) { resumed.Store(true) }}
	if err := run(t, t.Context(), j); err != nil {
		t.Fatal(err)
	}
	if !resumed.Load() {
		t.Error("it did not pause")
	}
}

// fill writes a file that leaves the given space, and returns a function that deletes it.
func fill(t *testing.T, dir string, left int) (remove func()) {
	t.Helper()
	name := filepath.Join(dir, "other")
	free, err := vfs.OS.Free(dir)
	if err == nil {
		err = os.WriteFile(name, bytes.Repeat([]byte("x"), int(free)-left), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}
