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
	"kumo/internal/base/wait"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

const (
	// CommitBytes is the size at which a batch is committed without waiting for the interval.
	CommitBytes = 256 << 10
	keepPending = 4 << 20 // of a reused buffer
)

// A Config configures a ledger.
type Config struct {
	Stores     []store.Store
	Journal    journal.Journal
	Every      time.Duration // interval between commits; a large batch is committed earlier
	MaxPending int           // bytes of uncommitted entries at which workers have to wait
	Now        func() time.Time

	// Begin appends the first entry of a batch.
	Begin func(batch []byte, now time.Time) []byte
	// Mark appends an entry with a file's length.
	Mark func(batch []byte, m store.Mark) []byte
	// Extra appends counters that are kept elsewhere, when a batch is closed.
	Extra func(batch []byte) []byte
	// Durable is called with the file lengths that are now in the journal, before any file is closed. It must be quick;
	// may be nil.
	Durable func([]store.Mark)
}

// A Ledger implements group commit: it collects what workers put and makes it durable in batches, records before the
// journal. Its methods may be called concurrently.
type Ledger struct {
	cfg Config

	// gate is held for reading while a record and its entries are put, and for writing while a batch is closed. So a
	// batch has the entries of exactly the records that are within the file lengths in it.
	gate     sync.RWMutex
	commitMu sync.Mutex // held while committing; acquired before gate
	mu       sync.Mutex // guards pending, idle and commitProgress
	pending  []byte
	keepOpen bool // files keep their names for a while; guarded by commitMu
	// the journal has marks that the stores do not know of; guarded by commitMu
	storesBehind bool
	failed       error // error of a commit, after which none may follow; guarded by commitMu
	// error of a put that took effect only in part: nothing more may be committed
	torn      atomic.Pointer[error]
	sinceDrop atomic.Int64 // bytes in the journal since the last drop
	drained   *sync.Cond   // on mu: pending was committed, or nobody will commit it
	idle      bool         // Run is not active, so nobody else commits
	// buffer of the previous batch, for reuse; only the committer uses it
	spare          []byte
	marked         map[string]int64 // file lengths in the journal
	commitProgress                  // guarded by mu
	full           chan struct{}
	heartbeat      wait.Heartbeat // of Run
}

// New returns a ledger. Until Run is called, it commits by itself only when cfg.MaxPending is exceeded.
func New(cfg Config) *Ledger {
	l := &Ledger{cfg: cfg, marked: map[string]int64{}, full: make(chan struct{}, 1), idle: true}
	l.drained = sync.NewCond(&l.mu)
	if cfg.Journal != nil { // without a journal nothing can be committed
		l.at = cfg.Journal.End()
	}
	return l
}

// Within calls f while no batch is closed. So f's changes of the journal's views belong to the same batch as its
// entries.
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

// WithinExclusive is like Within, but nobody else is within. All puts of others are completely in the journal and its
// views, or come after f. They wait for f.
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

// Put stores records and skips, and then queues the entries that finish returns. Call it within Within.
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

// waitForRoom blocks a worker while the disk is behind. If Run is not active, it commits instead.
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

// Enqueue queues entries without records. Call it within Within, too.
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

// Run commits regularly until the context ends. It does not make the last commit.
func (l *Ledger) Run(ctx context.Context) error {
	l.setIdle(false)
	defer l.setIdle(true)
	defer l.heartbeat.Stop()
	tick := time.NewTicker(l.cfg.Every)
	defer tick.Stop()
	for {
		l.heartbeat.Beat()
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

// Silence returns the time since Run's last commit, which may have been empty; 0 if Run is not active.
func (l *Ledger) Silence() time.Duration { return l.heartbeat.Silence() }

func (l *Ledger) setIdle(idle bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = idle
	l.drained.Broadcast()
}

// Commit makes all entries put so far durable.
func (l *Ledger) Commit() error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	return l.commitLocked()
}

// commitLocked is Commit with commitMu held.
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

// CommitTo makes all entries put so far durable, and returns the journal position after them.
func (l *Ledger) CommitTo() (journal.Position, error) {
	if err := l.Commit(); err != nil {
		return 0, err
	}
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	return l.cfg.Journal.End(), nil
}

// Pause commits, and calls f with the journal position and the file lengths while nothing can be put. Workers are
// blocked only while the entries put during a first commit are made durable, and during f.
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

// Drop drops the journal before a position, when checkpoints contain its data.
func (l *Ledger) Drop(before journal.Position) error {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	if l.failed != nil {
		return l.failed
	}
	l.sinceDrop.Store(0)
	return l.cfg.Journal.Drop(before)
}

// Written returns the bytes written to the journal since the last Drop, plus those of AddReplayCost.
func (l *Ledger) Written() int64 { return l.sinceDrop.Load() }

// write makes a batch durable, after its records.
func (l *Ledger) write(batch []byte, marks []store.Mark) error {
	if len(batch) == 0 && !l.changed(marks) {
		l.spare = batch
		return l.finalizeStores()
	}
	for _, s := range l.cfg.Stores {
		if err := s.Sync(); err != nil {
			return fmt.Errorf("sync record files: %w", err)
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

// finalizeStores informs the stores of the marks in the journal. While files keep their names, it is left to a later
// commit.
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

// closeBatch takes the pending entries, and the lengths of the files with their records.
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
			return nil, nil, fmt.Errorf("write record files: %w", err)
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

// WithClosedFiles adds the lengths of the files that were closed since the run began. The caller must be in Pause.
func (l *Ledger) WithClosedFiles(marks []store.Mark) []store.Mark {
	all := slices.Clone(marks)
	for _, name := range slices.Sorted(maps.Keys(l.marked)) {
		if _, open := store.FindMark(marks, name); !open {
			all = append(all, store.Mark{Name: name, Length: l.marked[name]})
		}
	}
	return all
}

// withMarks appends the marks that have changed to the batch, and keeps its buffer for the batch after the next.
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

// Close makes the last commit and finalizes all files.
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

// MarkTorn prevents further commits, because a put took effect only in part. err is the reason.
func (l *Ledger) MarkTorn(err error) { l.torn.CompareAndSwap(nil, &err) }

// CommitSoon starts the next commit without waiting for the interval.
func (l *Ledger) CommitSoon() {
	select {
	case l.full <- struct{}{}:
	default:
	}
}

// AddReplayCost adds to Written, for entries whose replay costs more than their bytes in the journal.
func (l *Ledger) AddReplayCost(bytes int64) { l.sinceDrop.Add(bytes) }

// KeepOpen makes record files keep their names until AllowClose is called. Call it in Pause.
func (l *Ledger) KeepOpen() { l.keepOpen = true }

// AllowClose reverts KeepOpen.
func (l *Ledger) AllowClose() {
	l.commitMu.Lock()
	defer l.commitMu.Unlock()
	l.keepOpen = false
}
