// Package ledger makes journal entries and the records that they refer to durable, by group commit.
//
// A worker puts each entry together with its records and its changes of views while it holds a gate ([Ledger.Within]).
// A batch is closed only while no worker holds the gate. So the entries of a batch match exactly the records within the
// file lengths that the batch contains.
//
// Records are made durable first, then the batch. So a crash loses the changes since the last commit, and a restart
// truncates the files to the lengths in the journal.
package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

const (
	// CommitBytes is how large a batch is that does not wait for its time.
	CommitBytes = 256 << 10
	keepPending = 4 << 20 // of a buffer that is used again
)

// A Config says what a ledger writes to, and how often.
type Config struct {
	Stores     []store.Store
	Journal    journal.Journal
	Every      time.Duration // between two commits; one with much to write does not wait for its time
	MaxPending int           // bytes of entries that wait to be committed, before workers do
	Now        func() time.Time

	// Begin appends the entry that a batch begins with.
	Begin func(batch []byte, now time.Time) []byte
	// Mark appends the entry that names a file's length.
	Mark func(batch []byte, m store.Mark) []byte
	// Extra appends what was counted elsewhere, as it is when a batch is cut off.
	Extra func(batch []byte) []byte
	// Durable is told the files' lengths that the journal has, before any file is closed for them. It must be quick; may
	// be nil.
	Durable func([]store.Mark)
}

// A Ledger is the group commit: it collects what workers put, and makes it durable in batches, records before the
// journal. Its methods may be called by many goroutines at once.
type Ledger struct {
	cfg Config

	// gate is held for reading while a record and its entries are put, and for writing while a batch is cut off, so that a
	// batch has the entries of just the records that the files have at its marks.
	gate     sync.RWMutex
	commitMu sync.Mutex // held by the one who commits; taken before gate
	mu       sync.Mutex // guards pending and idle
	pending  []byte
	keepOpen bool // files keep their names for a while; guarded by one
	// stores were not told of all that the journal has; guarded by one
	storesBehind bool
	failed       error // of a commit: nothing more may follow it; guarded by one
	// what was put last is only in part where it belongs: nothing more may be committed
	torn      atomic.Pointer[error]
	sinceDrop atomic.Int64 // bytes journalled since the last drop
	drained   *sync.Cond   // on mu: pending was cut off, or nobody will
	idle      bool         // nobody commits on the way: run has not begun, or has ended
	// the buffer of the batch before, to be pending again; only the one who commits touches it
	spare          []byte
	marked         map[string]int64 // the lengths that the journal has
	commitProgress                  // guarded by mu
	full           chan struct{}
}

// New makes a ledger. Before Run is called, only what exceeds cfg.Room is committed by itself.
func New(cfg Config) *Ledger {
	l := &Ledger{cfg: cfg, marked: map[string]int64{}, full: make(chan struct{}, 1), idle: true}
	l.drained = sync.NewCond(&l.mu)
	if cfg.Journal != nil { // without one nothing can be committed
		l.at = cfg.Journal.End()
	}
	return l
}

// Within does f while nothing is cut off: what f does to the views of the journal is in the same batch as its entries.
func (l *Ledger) Within(f func() error) error {
	if err := l.waitForRoom(); err != nil {
		return err
	}
	l.gate.RLock()
	defer l.gate.RUnlock()
	err := f()
	if err != nil {
		l.MarkTorn(err)
	}
	return err
}

// WithinExclusive is Within while nobody else is within: what others put is there as a whole, in the journal and its views, or
// comes after f. All who put wait for f.
func (l *Ledger) WithinExclusive(f func() error) error {
	if err := l.waitForRoom(); err != nil {
		return err
	}
	l.gate.Lock()
	defer l.gate.Unlock()
	err := f()
	if err != nil {
		l.MarkTorn(err)
	}
	return err
}

// Put stores records, and what was left out, then queues the entries that finish makes of them. It is called within.
func (l *Ledger) Put(records []*page.Record, skips []page.Skip, finish func() []byte) error {
	for _, s := range l.cfg.Stores {
		for _, rec := range records {
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
	l.Enqueue(finish())
	return nil
}

// waitForRoom blocks a worker while the disk does not keep up. Before and after Run it commits instead.
func (l *Ledger) waitForRoom() error {
	l.mu.Lock()
	for len(l.pending) > l.cfg.MaxPending && !l.idle {
		l.drained.Wait()
	}
	full := len(l.pending) > l.cfg.MaxPending && l.cfg.Journal != nil
	l.mu.Unlock()
	if full {
		return l.Commit()
	}
	return nil
}

// Enqueue queues entries that speak of no record. It is called within, too.
func (l *Ledger) Enqueue(entries []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 && len(entries) > 0 {
		l.pending = l.cfg.Begin(l.pending, l.cfg.Now())
	}
	l.pending = append(l.pending, entries...)
	if len(entries) > 0 {
		l.last = l.cuts + 1
	}
	if len(l.pending) >= CommitBytes {
		l.CommitSoon()
	}
}

// Run commits until the context ends. It does not make the last commit.
func (l *Ledger) Run(ctx context.Context) error {
	l.setIdle(false)
	defer l.setIdle(true)
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-l.full:
		}
		if err := l.Commit(); err != nil {
			return err
		}
	}
}

func (l *Ledger) setIdle(idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = idle
	l.drained.Broadcast()
}

// Commit makes durable all that was put so far.
func (l *Ledger) Commit() error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	return l.commitLocked()
}

// commitLocked is commit with one held.
func (l *Ledger) commitLocked() error {
	if l.failed != nil {
		return l.failed
	}
	batch, marks, err := l.closeBatch()
	if err == nil {
		err = l.write(batch, marks)
	}
	l.failed = err
	l.advance(err)
	return err
}

// CommitTo makes durable all that was put so far, and returns the journal's position behind it.
func (l *Ledger) CommitTo() (journal.Position, error) {
	if err := l.Commit(); err != nil {
		return 0, err
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	return l.cfg.Journal.End(), nil
}

// Pause commits, and calls f while nothing is put, with the journal's position and the files' lengths. All stand still
// only for as long as it takes to make durable what was put during a commit.
func (l *Ledger) Pause(f func(at journal.Position, marks []store.Mark) error) error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	if err := l.commitLocked(); err != nil {
		return err
	}
	l.gate.Lock()
	defer l.gate.Unlock()
	batch, marks, err := l.closeBatchLocked()
	if err == nil {
		err = l.write(batch, marks)
	}
	l.advance(err)
	if l.failed = err; err != nil {
		return err
	}
	return f(l.cfg.Journal.End(), marks)
}

// Drop lets go of what checkpoints have.
func (l *Ledger) Drop(before journal.Position) error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	l.sinceDrop.Store(0)
	return l.cfg.Journal.Drop(before)
}

// Written is how many bytes were journalled since the last checkpoint.
func (l *Ledger) Written() int64 { return l.sinceDrop.Load() }

// write makes a batch durable, after the records that its marks speak of.
func (l *Ledger) write(batch []byte, marks []store.Mark) error {
	if len(batch) == 0 && !l.changed(marks) {
		l.spare = batch
		return l.finalizeStores()
	}
	for _, s := range l.cfg.Stores {
		if err := s.Sync(); err != nil {
			return fmt.Errorf("make records durable: %w", err)
		}
	}
	if err := l.cfg.Journal.Append(l.withMarks(batch, marks)); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	l.sinceDrop.Add(int64(len(batch)))
	if l.cfg.Durable != nil {
		l.cfg.Durable(marks)
	}
	l.storesBehind = true
	return l.finalizeStores()
}

// finalizeStores tells stores what the journal has. While files keep their names, a later commit does it.
func (l *Ledger) finalizeStores() error {
	if l.keepOpen || !l.storesBehind {
		return nil
	}
	for _, s := range l.cfg.Stores {
		if err := s.Finalize(); err != nil {
			return fmt.Errorf("close a record file: %w", err)
		}
	}
	l.storesBehind = false
	return nil
}

// closeBatch takes the pending entries and the lengths of the files that hold their records.
func (l *Ledger) closeBatch() (batch []byte, marks []store.Mark, err error) {
	l.gate.Lock()
	defer l.gate.Unlock()
	return l.closeBatchLocked()
}

func (l *Ledger) closeBatchLocked() (batch []byte, marks []store.Mark, err error) {
	if err := l.torn.Load(); err != nil {
		return nil, nil, *err
	}
	for _, s := range l.cfg.Stores {
		m, err := s.Mark()
		if err != nil {
			return nil, nil, fmt.Errorf("write records: %w", err)
		}
		marks = append(marks, m...)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	batch, l.pending, l.spare = l.cfg.Extra(l.pending), l.spare[:0], nil
	l.cuts++
	l.drained.Broadcast()
	return batch, marks, nil
}

func (l *Ledger) changed(marks []store.Mark) bool {
	return slices.ContainsFunc(marks, func(m store.Mark) bool { return l.marked[m.Name] != m.Length })
}

// WithClosedFiles adds the lengths of the files that were closed since the run began. It is called with one held.
func (l *Ledger) WithClosedFiles(marks []store.Mark) []store.Mark {
	all := slices.Clone(marks)
	for _, name := range slices.Sorted(maps.Keys(l.marked)) {
		if _, open := store.FindMark(marks, name); !open {
			all = append(all, store.Mark{Name: name, Length: l.marked[name]})
		}
	}
	return all
}

// withMarks adds the marks that have changed, and keeps the buffer for the batch after the next.
func (l *Ledger) withMarks(batch []byte, marks []store.Mark) []byte {
	for _, m := range marks {
		if length, known := l.marked[m.Name]; !known || length != m.Length {
			batch = l.cfg.Mark(batch, m)
			l.marked[m.Name] = m.Length
		}
	}
	if cap(batch) <= keepPending {
		l.spare = batch
	}
	return batch
}

// Close makes the last commit and gives every file its final form.
func (l *Ledger) Close() error {
	if err := l.Commit(); err != nil {
		return err
	}
	for _, s := range l.cfg.Stores {
		if err := s.Close(); err != nil {
			return fmt.Errorf("close record files: %w", err)
		}
	}
	return nil
}

// MarkTorn says that what was put last is only in part where it belongs: nothing more is committed, and err is why.
func (l *Ledger) MarkTorn(err error) { l.torn.CompareAndSwap(nil, &err) }

// CommitSoon has the next commit not wait for its time.
func (l *Ledger) CommitSoon() {
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// AddReplayCost adds to what Written tells, for what costs a replay more than its bytes in the journal.
func (l *Ledger) AddReplayCost(bytes int64) { l.sinceDrop.Add(bytes) }

// KeepOpen has record files keep their names until Settle is called. It is called in Pause.
func (l *Ledger) KeepOpen() { l.keepOpen = true }

// Settle ends what KeepOpen began.
func (l *Ledger) AllowClose() {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.keepOpen = false
}
