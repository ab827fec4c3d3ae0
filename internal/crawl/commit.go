package crawl

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/journal"
	"kumo/internal/page"
	"kumo/internal/store"
)

const (
	commitBytes = 256 << 10 // of journal entries: a batch that is larger does not wait for its time
	maxPending  = 64 << 20  // of entries that wait to be committed, where there is memory
	keepPending = 4 << 20   // of a buffer that is used again
)

// A committer is the group commit: it collects what workers put, and makes it durable in batches, records before the
// journal.
type committer struct {
	stores  []store.Store
	journal journal.Journal
	every   time.Duration
	room    int // of entries that wait to be committed, before workers do
	now     func() time.Time
	extra   func(*encoder) // adds counts that are collected elsewhere, as they are when a batch is cut off

	// gate is held for reading while a record and its entries are put, and for writing while a batch is cut off, so that a
	// batch has the entries of just the records that the files have at its marks.
	gate    sync.RWMutex
	one     sync.Mutex // held by the one who commits; taken before gate
	mu      sync.Mutex // guards pending and idle
	pending []byte
	still   bool  // files keep their names for a while; guarded by one
	failed  error // of a commit: nothing more may follow it; guarded by one
	// what was put last is only in part where it belongs: nothing more may be committed
	torn    atomic.Pointer[error]
	since   atomic.Int64 // bytes journalled since the last drop
	drained *sync.Cond   // on mu: pending was cut off, or nobody will
	idle    bool         // nobody commits on the way: run has not begun, or has ended
	// the buffer of the batch before, to be pending again; only the one who commits touches it
	spare          []byte
	marked         map[string]int64 // the lengths that the journal has
	commitProgress                  // guarded by mu
	full           chan struct{}
}

func newCommitter(p Parts, cfg Config, extra func(*encoder)) *committer {
	c := &committer{stores: p.Stores, journal: p.Journal, every: cfg.Commit, now: cfg.Now, extra: extra,
		room:   cfg.Shares.pending(),
		marked: map[string]int64{}, full: make(chan struct{}, 1), idle: true}
	c.drained = sync.NewCond(&c.mu)
	return c
}

// within does f while nothing is cut off: what f does to the views of the journal is in the same batch as its entries.
func (c *committer) within(f func() error) error {
	c.waitForRoom()
	c.gate.RLock()
	defer c.gate.RUnlock()
	err := f()
	if err != nil {
		c.torn.CompareAndSwap(nil, &err)
	}
	return err
}

// put stores a record, if there is one, and what was left out, then queues the entries that finish makes of it. It is
// called within.
func (c *committer) put(rec *page.Record, skips []page.Skip, finish func() []byte) error {
	for _, s := range c.stores {
		if rec != nil {
			if err := s.Put(rec); err != nil {
				return fmt.Errorf("store the record of %s: %w", rec.URL, err)
			}
		}
		for i := range skips {
			if err := s.PutSkip(&skips[i]); err != nil {
				return err
			}
		}
	}
	c.enqueue(finish())
	return nil
}

// waitForRoom holds a worker back while the disk does not keep up.
func (c *committer) waitForRoom() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) > c.room && !c.idle {
		c.drained.Wait()
	}
}

func (c *committer) enqueue(entries []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) == 0 && len(entries) > 0 {
		begin := encoder{c.pending}
		begin.time(c.now())
		c.pending = begin.b
	}
	c.pending = append(c.pending, entries...)
	if len(c.pending) >= commitBytes {
		select {
		case c.full <- struct{}{}:
		default:
		}
	}
}

// run commits until the context ends. It does not make the last commit.
func (c *committer) run(ctx context.Context) error {
	c.setIdle(false)
	defer c.setIdle(true)
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-c.full:
		}
		if err := c.commit(); err != nil {
			return err
		}
	}
}

func (c *committer) setIdle(idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle = idle
	c.drained.Broadcast()
}

// commit makes durable all that was put so far.
func (c *committer) commit() error {
	c.one.Lock()
	defer c.one.Unlock()
	return c.commitAlone()
}

// commitAlone is commit with one held.
func (c *committer) commitAlone() error {
	if c.failed != nil {
		return c.failed
	}
	batch, marks, err := c.cut()
	if err == nil {
		err = c.write(batch, marks)
	}
	c.failed = err
	c.advance(err)
	return err
}

// commitTo makes durable all that was put so far, and returns the journal's position behind it.
func (c *committer) commitTo() (journal.Position, error) {
	if err := c.commit(); err != nil {
		return 0, err
	}
	c.one.Lock()
	defer c.one.Unlock()
	return c.journal.End(), nil
}

// pause commits, and calls f while nothing is put, with the journal's position and the files' lengths. All stand still
// only for as long as it takes to make durable what was put during a commit.
func (c *committer) pause(f func(at journal.Position, marks []store.Mark) error) error {
	c.one.Lock()
	defer c.one.Unlock()
	if err := c.commitAlone(); err != nil {
		return err
	}
	c.gate.Lock()
	defer c.gate.Unlock()
	batch, marks, err := c.cutAlone()
	if err == nil {
		err = c.write(batch, marks)
	}
	c.advance(err)
	if c.failed = err; err != nil {
		return err
	}
	return f(c.journal.End(), marks)
}

// drop lets go of what checkpoints have.
func (c *committer) drop(before journal.Position) error {
	c.one.Lock()
	defer c.one.Unlock()
	if c.failed != nil {
		return c.failed
	}
	c.since.Store(0)
	return c.journal.Drop(before)
}

// written is how many bytes were journalled since the last checkpoint.
func (c *committer) written() int64 { return c.since.Load() }

// write makes a batch durable, after the records that its marks speak of.
func (c *committer) write(batch []byte, marks []store.Mark) error {
	if len(batch) == 0 && !c.changed(marks) {
		c.spare = batch
		return nil
	}
	for _, s := range c.stores {
		if err := s.Sync(); err != nil {
			return fmt.Errorf("make records durable: %w", err)
		}
	}
	if err := c.journal.Append(c.withMarks(batch, marks)); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	c.since.Add(int64(len(batch)))
	if c.still {
		return nil // the next commit does it
	}
	for _, s := range c.stores {
		if err := s.Settle(); err != nil {
			return fmt.Errorf("close a record file: %w", err)
		}
	}
	return nil
}

// cut takes the pending entries and the lengths of the files that hold their records.
func (c *committer) cut() (batch []byte, marks []store.Mark, err error) {
	c.gate.Lock()
	defer c.gate.Unlock()
	return c.cutAlone()
}

func (c *committer) cutAlone() (batch []byte, marks []store.Mark, err error) {
	if err := c.torn.Load(); err != nil {
		return nil, nil, *err
	}
	for _, s := range c.stores {
		m, err := s.Mark()
		if err != nil {
			return nil, nil, fmt.Errorf("write records: %w", err)
		}
		marks = append(marks, m...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counted := encoder{c.pending}
	c.extra(&counted)
	batch, c.pending, c.spare = counted.b, c.spare[:0], nil
	c.cuts++
	c.drained.Broadcast()
	return batch, marks, nil
}

func (c *committer) changed(marks []store.Mark) bool {
	return slices.ContainsFunc(marks, func(m store.Mark) bool { return c.marked[m.Name] != m.Length })
}

// withClosed adds the lengths of the files that were closed since the run began. It is called with one held.
func (c *committer) withClosed(marks []store.Mark) []store.Mark {
	all := slices.Clone(marks)
	for _, name := range slices.Sorted(maps.Keys(c.marked)) {
		if _, open := store.Find(marks, name); !open {
			all = append(all, store.Mark{Name: name, Length: c.marked[name]})
		}
	}
	return all
}

// withMarks adds the marks that have changed, and keeps the buffer for the batch after the next.
func (c *committer) withMarks(batch []byte, marks []store.Mark) []byte {
	e := encoder{batch}
	for _, m := range marks {
		if length, known := c.marked[m.Name]; !known || length != m.Length {
			e.mark(m)
			c.marked[m.Name] = m.Length
		}
	}
	if cap(e.b) <= keepPending {
		c.spare = e.b
	}
	return e.b
}

// close makes the last commit and gives every file its final form.
func (c *committer) close() error {
	if err := c.commit(); err != nil {
		return err
	}
	for _, s := range c.stores {
		if err := s.Close(); err != nil {
			return fmt.Errorf("close record files: %w", err)
		}
	}
	return nil
}
