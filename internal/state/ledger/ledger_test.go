package ledger

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/store"
)

// WithinExclusive sees no partial puts.
func TestAloneNobodyElseIsWithin(t *testing.T) {
	j, err := file.Open(vfs.OS, t.TempDir(), file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l := testLedger(j)
	var within atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				_ = l.Within(func() error {
					within.Add(1)
					runtime.Gosched()
					within.Add(-1)
					return nil
				})
				_ = l.WithinExclusive(func() error {
					if n := within.Add(10); n != 10 {
						t.Errorf("%d others are within", n-10)
					}
					runtime.Gosched()
					within.Add(-10)
					return nil
				})
			}
		})
	}
	all.Wait()
	broken := errors.New("broken")
	if err := l.WithinExclusive(func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("alone: %v", err)
	}
	if err := l.Commit(); !errors.Is(err, broken) {
		t.Errorf("a commit of what was put in part: %v", err)
	}
}

// Entries are reported as durable after the commit. An empty commit changes nothing.
func TestSettled(t *testing.T) {
	j, err := file.Open(vfs.OS, t.TempDir(), file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l := testLedger(j)
	for range 3 {
		if !l.IsDurable() {
			t.Error("it is not settled though nothing was put")
		}
		if err := l.Put(nil, nil, func() []byte { return []byte("entry") }); err != nil {
			t.Fatal(err)
		}
		if l.IsDurable() {
			t.Error("what was put is settled before it is durable")
		}
		for range 2 {
			if err := l.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A counter is a store that counts its finalizations.
type counter struct {
	store.Store
	settled int
}

func (*counter) Mark() ([]store.Mark, error) { return nil, nil }
func (*counter) Sync() error                 { return nil }
func (c *counter) Finalize() error           { c.settled++; return nil }

// Batches committed while files keep their names are finalized by the next commit that may, even if nothing was put.
func TestSettlesWhatWasCommittedWhileFilesKeptTheirNames(t *testing.T) {
	j, err := file.Open(vfs.OS, t.TempDir(), file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l, c := testLedger(j), &counter{}
	l.cfg.Stores = []store.Store{c}
	l.KeepOpen()
	if err := errors.Join(l.Put(nil, nil, func() []byte { return []byte("entry") }), l.Commit()); err != nil ||
		c.settled != 0 {
		t.Fatalf("%v, settled %d times", err, c.settled)
	}
	l.AllowClose()
	for range 2 {
		if err := l.Commit(); err != nil || c.settled != 1 {
			t.Errorf("%v, settled %d times, want once", err, c.settled)
		}
	}
}

// A torn batch must remain the last in the journal, otherwise later batches could not be trusted.
func TestNothingFollowsAFailedCommit(t *testing.T) {
	disk, dir := vfstest.NewFaulty(vfs.OS), t.TempDir()
	j, err := file.Open(disk, dir, file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c := testLedger(j)
	commit := func(b byte) error {
		if err := c.Put(nil, nil, func() []byte { return bytes.Repeat([]byte{b}, 16) }); err != nil {
			t.Fatal(err)
		}
		return c.Commit()
	}
	if err := commit(1); err != nil {
		t.Fatal(err)
	}
	disk.SetRoom(20)
	if err := commit(2); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	disk.SetRoom(-1) // the disk has space again
	if err := commit(3); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a commit after it: %v", err)
	}
	if err := c.Drop(1); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a drop after it: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = file.Open(disk, dir, file.Config{}); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	n := 0
	err = j.Replay(0, func(batch []byte, _ journal.Position) error {
		n++
		return nil
	})
	if err != nil || n != 1 {
		t.Errorf("%d batches, %v", n, err)
	}
}

// Without Run, Within commits by itself: pending entries exceed MaxPending by at most one batch.
func TestRoomIsKeptWithoutRun(t *testing.T) {
	j, err := file.Open(vfs.OS, t.TempDir(), file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l := testLedger(j)
	batch := bytes.Repeat([]byte{1}, 300<<10)
	for range 20 {
		err := l.Within(func() error { return l.Put(nil, nil, func() []byte { return batch }) })
		if err != nil {
			t.Fatal(err)
		}
		if n := len(l.pending); n > l.cfg.MaxPending+len(batch) {
			t.Fatalf("%d bytes are pending", n)
		}
	}
}

func testLedger(j journal.Journal) *Ledger {
	return New(Config{Journal: j, Every: time.Second, MaxPending: 1 << 20, Now: time.Now,
		Begin: func(batch []byte, _ time.Time) []byte { return batch },
		Mark:  func(batch []byte, m store.Mark) []byte { return append(batch, m.Name...) },
		Extra: func(batch []byte) []byte { return batch }})
}

// Pause makes the entries put before it durable while workers continue.
func TestAPauseHoldsNobodyBackWhileTheDiskStalls(t *testing.T) {
	stalls, goesOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stalled := &atomic.Bool{}
	disk := vfstest.NewSlow(vfs.OS, func(string) {
		if stalled.Load() {
			once.Do(func() { close(stalls) })
			<-goesOn
		}
	})
	j, err := file.Open(disk, t.TempDir(), file.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	l := testLedger(j)
	put := func() error {
		return l.Within(func() error { return l.Put([]*page.Record{{}}, nil, func() []byte { return make([]byte, 16) }) })
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	stalled.Store(true)
	paused := make(chan error, 1)
	go func() {
		paused <- l.Pause(func(at journal.Position, _ []store.Mark) error {
			if at != j.End() || len(l.pending) > 0 {
				return fmt.Errorf("at %d of %d, %d bytes wait", at, j.End(), len(l.pending))
			}
			return nil
		})
	}()
	<-stalls
	if err := put(); err != nil { // would wait forever if the pause blocked it
		t.Fatal(err)
	}
	stalled.Store(false)
	close(goesOn)
	if err := <-paused; err != nil {
		t.Fatal(err)
	}
}
