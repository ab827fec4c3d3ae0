// Package follow sends the records of a running crawl to a sink by reading the crawl's own files.
//
// A [Follower] is one of the crawl's stores. It therefore learns the lengths of pages.jsonl, text.jsonl and
// fields.jsonl whenever the journal records them. It reads the files up to these lengths and sends the records in
// batches. A slow or unavailable sink thus costs no memory, loses no records and does not delay the crawl. The position
// that the sink has acknowledged is saved in the crawl's state. Records after this position are sent again after a
// crash.
package follow

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// A Config configures a Follower.
type Config struct {
	Dir  string // the crawl's folder
	Disk vfs.FS
	Name string // name of the sink, for messages and the position file; has no password
	// Open connects to the sink.
	Open func(context.Context) (sink.Sink, error)
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error // waits, or returns the context's error
	// Patience is how long an unavailable sink is retried after the crawl has ended.
	Patience time.Duration
	// PositionFile is the file with the sink's position; "": one in the crawl's state.
	PositionFile string
	// ResumeCommand is the command, without the folder, that sends the remaining records after the crawl; "": kumo
	// export.
	ResumeCommand string
	// Rules returns the field rules that apply to a URL; nil: unknown.
	Rules func(url string) []page.FieldRule
	// BatchDelay is how long records are collected before they are sent; 0: half a second.
	BatchDelay time.Duration
	// OnRestart is called before all records are sent again from the first; may be nil.
	OnRestart func() error
	// Lock prevents other processes from sending to the sink, from Begin to the end of Run. nil: no lock.
	Lock func() (io.Closer, error)
	// ID returns a unique ID of the sink's current content, "" if there is none. A saved position is valid only for the
	// same ID. nil: positions are always valid.
	ID func() (string, error)
	// OnFailure and OnRecovery are called when the sink becomes unavailable, and when it is available again.
	OnFailure  func(err error)
	OnRecovery func()
	// OnAttempt is called after each attempt to send a batch, which it must not retain; may be nil.
	OnAttempt func(*sink.Attempt)
}

// Indexes of the files that are read.
const (
	pages = iota
	texts
	fields
)

var names = [...]string{pages: "pages.jsonl", texts: "text.jsonl", fields: "fields.jsonl"}

type lengths [len(names)]int64

var _ store.Store = (*Follower)(nil)

// A Follower sends a crawl's records to a sink. Only the engine calls its methods as a store, as those of other stores.
type Follower struct {
	cfg    Config
	put    atomic.Int64 // lines added to pages.jsonl in this run
	done   atomic.Int64 // lines processed
	before atomic.Int64 // lines that were pending at the start of the run

	// Figures of this run.
	sent, bytes       atomic.Int64 // records
	failures, retries atomic.Int64 // tries

	marked lengths // lengths at the last Mark; used only by the engine

	mu      sync.Mutex
	durable lengths
	acked   int64 // bytes of pages.jsonl whose records the sink has stored
	over    bool
	ended   bool          // Run has returned
	failure string        // why the sink is unavailable; "" if it is available
	failed  time.Time     // start of the failures; zero: the sink is available
	oldest  time.Time     // visit of the first pending record; zero: unknown
	wake    chan struct{} // has an element if there are new records or the crawl has ended

	lock io.Closer // nil: not locked
	sink sink.Sink // nil: not connected
	reader
}

// New returns a follower. It must come after all other stores of the crawl.
func New(cfg Config) *Follower {
	return &Follower{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Put implements store.Store. It only counts.
func (f *Follower) Put(rec *page.Record) error {
	if rec.Response != nil && !rec.Robots && !rec.Helper {
		f.put.Add(1)
	}
	return nil
}

// PutSkip implements store.Store.
func (f *Follower) PutSkip(*page.Skip) error { return nil }

// Mark implements store.Store. It records the lengths of the files, which have whole records only now, and returns no
// marks.
func (f *Follower) Mark() ([]store.Mark, error) {
	for i, name := range names {
		size, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f.marked[i] = size
	}
	return nil, nil
}

// Sync implements store.Store.
func (f *Follower) Sync() error { return nil }

// Finalize implements store.Store: the journal includes the lengths of the last Mark.
func (f *Follower) Finalize() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.durable = f.marked
	f.notify()
	return nil
}

// Close implements store.Store.
func (f *Follower) Close() error { return nil }

// End marks the end of the crawl: no more records follow.
func (f *Follower) End() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.notify()
}

func (f *Follower) notify() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *Follower) status() (upTo lengths, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.durable, f.over
}

// Status returns the figures of the sink. Waiting is approximate.
func (f *Follower) Status() stats.Sink {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := stats.Sink{Sink: f.cfg.Name, Sent: f.sent.Load(), Bytes: f.bytes.Load(), Failures: f.failures.Load(),
		Retries: f.retries.Load(), Waiting: max(0, f.before.Load()+f.put.Load()-f.done.Load()), Why: f.failure}
	if s.Waiting > 0 && !f.oldest.IsZero() {
		s.Behind = max(0, f.cfg.Now().Sub(f.oldest).Seconds())
	}
	return s
}

// Name returns the sink's name, as in Config.
func (f *Follower) Name() string { return f.cfg.Name }

// Acknowledged returns the number of bytes of pages.jsonl whose records the sink has stored durably.
func (f *Follower) Acknowledged() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.acked
}

// CaughtUp reports whether the sink has all records up to the journal's position. It also returns true if waiting
// longer is no use: the sink has been unavailable for longer than Patience, or Run has returned.
func (f *Follower) CaughtUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended || f.acked >= f.durable[pages] || !f.failed.IsZero() && f.cfg.Now().Sub(f.failed) > f.cfg.Patience
}

func (f *Follower) acknowledge(upTo int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked = upTo
}

// A BacklogError means that a sink has not received all records.
type BacklogError struct {
	stats.Sink
	rest string // another command that sends the rest
	err  error
}

func (e *BacklogError) Error() string {
	return fmt.Sprintf("%d records are not sent to %s: %v", e.Waiting, e.Sink.Sink, e.err)
}

func (e *BacklogError) Unwrap() error { return e.err }

const (
	firstPause        = 250 * time.Millisecond
	longestPause      = 30 * time.Second
	defaultBatchDelay = 500 * time.Millisecond // collects records, so that batches are not small
)

// Run sends records until one of these: End was called and the sink has all records; the sink is unavailable for too
// long (a [BacklogError]); ctx ends. Begin must be called first.
func (f *Follower) Run(ctx context.Context) (err error) {
	defer func() {
		if f.sink != nil {
			err = errors.Join(err, f.sink.Close())
		}
		err = errors.Join(err, f.savePosition(), f.reader.close(), f.unlock())
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended = true
	}()
	var since time.Time // start of Patience: the last success or the end of the crawl
	for pause := firstPause; ; {
		upTo, over := f.status()
		if over && since.IsZero() {
			since = f.cfg.Now()
		}
		more, err := f.step(ctx, upTo, over)
		refused, isSinks := errors.AsType[*sinkError](err)
		switch {
		case ctx.Err() != nil:
			return f.backlogError(ctx.Err())
		case err != nil && !isSinks:
			return fmt.Errorf("send to %s: %w", f.cfg.Name, err)
		case isSinks:
			if errors.Is(refused.err, sink.ErrDataLost) {
				if err := f.restart(); err != nil {
					return fmt.Errorf("send to %s: %w", f.cfg.Name, err)
				}
			}
			f.setFailed(refused.err)
			if over && f.cfg.Now().Sub(since)+pause > f.cfg.Patience {
				return f.backlogError(refused.err)
			}
			if f.cfg.Wait(ctx, pause) != nil {
				return f.backlogError(ctx.Err())
			}
			pause = min(pause+pause/2, longestPause)
			f.retries.Add(1)
		case more:
			f.setWorking()
			if pause = firstPause; over {
				since = f.cfg.Now()
			}
		case over:
			// Nothing is pending. Records put before Begin were counted twice.
			f.before.Store(f.done.Load() - f.put.Load())
			return nil
		default:
			f.setWorking()
			select {
			case <-f.wake:
			case <-ctx.Done():
			}
			if _, over := f.status(); !over && ctx.Err() == nil {
				_ = f.cfg.Wait(ctx, cmp.Or(f.cfg.BatchDelay, defaultBatchDelay)) // the loop checks ctx
			}
		}
	}
}

// backlogError returns the error of a sink that has not received all records; nil if nothing is pending.
func (f *Follower) backlogError(err error) error {
	s := f.Status()
	if s.Waiting == 0 && errors.Is(err, context.Canceled) {
		return nil
	}
	return &BacklogError{s, cmp.Or(f.cfg.ResumeCommand, "kumo export --to "+f.cfg.Name), err}
}

func (f *Follower) setFailed(err error) {
	f.mu.Lock()
	first := f.failure == ""
	f.failure = err.Error()
	if first {
		f.failed = f.cfg.Now()
	}
	f.mu.Unlock()
	f.failures.Add(1)
	if first && f.cfg.OnFailure != nil {
		f.cfg.OnFailure(err)
	}
}

func (f *Follower) setWorking() {
	f.mu.Lock()
	again := f.failure != ""
	f.failure, f.failed = "", time.Time{}
	f.mu.Unlock()
	if again && f.cfg.OnRecovery != nil {
		f.cfg.OnRecovery()
	}
}

// A sinkError is an error of the sink. It is always retried, because it may be fixed while the crawl runs.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// step sends a batch, if records are pending.
func (f *Follower) step(ctx context.Context, upTo lengths, over bool) (more bool, err error) {
	if f.at.Lengths[pages] >= upTo[pages] {
		f.dropUnmatched(upTo)
		if over && f.sink != nil {
			if err := f.sink.Flush(ctx); err != nil {
				return false, &sinkError{err}
			}
		}
		return false, f.maybeSavePosition()
	}
	batch, next, lines, err := f.read(upTo)
	if err != nil {
		return false, err
	}
	if len(batch) > 0 {
		f.setOldest(batch[0].Time)
		begin := f.cfg.Now()
		err := f.send(ctx, batch)
		if f.cfg.OnAttempt != nil {
			f.cfg.OnAttempt(&sink.Attempt{Sink: f.cfg.Name, Batch: batch, Begin: begin, End: f.cfg.Now(), Err: err})
		}
		if err != nil {
			f.rollback()
			return false, &sinkError{err}
		}
	}
	f.at.Lengths[pages] = next
	f.commit()
	f.acknowledge(next)
	f.setOldest(time.Time{})
	f.sent.Add(int64(len(batch)))
	for i := range batch {
		f.bytes.Add(int64(batch[i].Size()))
	}
	f.done.Add(lines)
	return true, f.maybeSavePosition()
}

// send puts a batch into the sink, and connects to it first if necessary.
func (f *Follower) send(ctx context.Context, batch []sink.Record) error {
	if f.sink == nil {
		s, err := f.cfg.Open(ctx)
		if err != nil {
			return err
		}
		f.sink = s
		if same, err := f.matchesSink(f.saved); f.saved.ID != "" && !same {
			return errors.Join(sink.ErrDataLost, err)
		}
	}
	return f.sink.Put(ctx, batch)
}

// setOldest sets the visit time of the first pending record.
func (f *Follower) setOldest(first time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest = first
}

// maybeSavePosition saves the position, at most once a second.
func (f *Follower) maybeSavePosition() error {
	now := f.cfg.Now()
	if now.Sub(f.savedAt) < time.Second {
		return nil
	}
	f.savedAt = now
	if err := f.savePosition(); !vfs.IsFull(err) { // Run's last save returns such an error
		return err
	}
	return nil
}

// A position is how far the sink has received the crawl's files, as it is saved.
type position struct {
	Sink    string
	Lengths lengths
	Behind  string   // bytes of pages.jsonl before the position, to detect another file
	Without []string `json:",omitempty"` // files that did not exist
	ID      string   `json:",omitempty"` // ID of the sink's content
}

func (f *Follower) positionFile() string {
	if f.cfg.PositionFile != "" {
		return f.cfg.PositionFile
	}
	sum := sha256.Sum256([]byte(f.cfg.Name))
	return filepath.Join(f.cfg.Dir, "state", "sinks", "crawl-"+hex.EncodeToString(sum[:8])+".json")
}

// Begin loads the position, and counts pending records. It is called after the crawl's folder is opened and before the
// crawl continues.
func (f *Follower) Begin() (err error) {
	if f.cfg.Lock != nil {
		if f.lock, err = f.cfg.Lock(); err != nil {
			return err
		}
	}
	if err := f.load(); err != nil {
		return errors.Join(fmt.Errorf("read records for %s: %w", f.cfg.Name, err), f.reader.close(), f.unlock())
	}
	return nil
}

func (f *Follower) unlock() error {
	held := f.lock
	if f.lock = nil; held == nil {
		return nil
	}
	return held.Close()
}

// WaitForData waits until the crawl has written records; it returns false if the crawl has ended without.
func (f *Follower) WaitForData(ctx context.Context) bool {
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return false
		}
		if upTo, over := f.status(); upTo != (lengths{}) || over {
			f.notify()
			return upTo != lengths{}
		}
	}
}

// FollowStatic reads the files as they are, if no crawl writes to them.
func (f *Follower) FollowStatic() error {
	if _, err := f.Mark(); err != nil {
		return err
	}
	return f.Finalize()
}

// restart starts over with the first record.
func (f *Follower) restart() error {
	closed := f.sink
	f.sink = nil
	err := f.reader.close()
	if closed != nil {
		err = errors.Join(err, closed.Close())
	}
	if err == nil {
		err = f.reset()
	}
	if err == nil {
		var waiting int64
		waiting, err = f.countLines()
		f.before.Store(waiting + f.done.Load() - f.put.Load())
	}
	return err
}

func (f *Follower) reset() error {
	f.reader = newReader(f.cfg.Disk, f.cfg.Dir, f.cfg.Rules)
	f.acknowledge(0)
	f.at.Sink = f.cfg.Name
	if f.cfg.OnRestart != nil {
		return f.cfg.OnRestart()
	}
	return nil
}

func (f *Follower) load() error {
	f.reader = newReader(f.cfg.Disk, f.cfg.Dir, f.cfg.Rules)
	follows := false
	data, err := vfs.ReadFile(f.cfg.Disk, f.positionFile(), 1<<20)
	was := position{}
	if err == nil && json.Unmarshal(data, &was) == nil && f.matchesFiles(was) && !f.hasNewFiles(was) {
		if follows, err = f.matchesSink(was); follows {
			f.reader.resumeAt(was)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f.at.Sink = f.cfg.Name
	if !follows {
		if err := f.reset(); err != nil {
			return err
		}
	}
	f.acknowledge(f.at.Lengths[pages])
	waiting, err := f.countLines()
	f.before.Store(waiting)
	return err
}

// matchesFiles reports whether a position belongs to the existing files: the crawl may have been restarted or repaired.
func (f *Follower) matchesFiles(p position) bool {
	for i, name := range names {
		size, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, name))
		if p.Lengths[i] < 0 || p.Lengths[i] > 0 && (err != nil || size < p.Lengths[i]) {
			return false
		}
	}
	behind, err := f.tail(p.Lengths[pages])
	return err == nil && behind == p.Behind
}

// matchesSink reports whether a position belongs to the sink's current content.
func (f *Follower) matchesSink(p position) (bool, error) {
	if f.cfg.ID == nil {
		return true, nil
	}
	id, err := f.cfg.ID()
	return err == nil && id != "" && id == p.ID, err
}

// hasNewFiles reports whether pages before a position now have texts or fields that did not exist when they were sent.
// The crawl creates them for all earlier pages if they are enabled later. All records are then sent again.
func (f *Follower) hasNewFiles(p position) bool {
	return p.Lengths[pages] > 0 && slices.ContainsFunc(p.Without, func(name string) bool {
		size, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, name))
		return err == nil && size > 0
	})
}

// missingFiles returns the names of the files that do not exist.
func (f *Follower) missingFiles() (all []string) {
	for _, i := range []int{texts, fields} {
		if _, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, names[i])); errors.Is(err, fs.ErrNotExist) {
			all = append(all, names[i])
		}
	}
	return all
}

// savePosition saves the position.
func (f *Follower) savePosition() error {
	p, err := f.position()
	if err != nil {
		return err
	}
	if f.cfg.ID != nil {
		if p.ID, err = f.cfg.ID(); err != nil {
			return err
		}
	}
	if p.Without = f.missingFiles(); reflect.DeepEqual(p, f.saved) {
		return nil
	}
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	name := f.positionFile()
	if err := f.cfg.Disk.MkdirAll(filepath.Dir(name)); err != nil {
		return err
	}
	if err := vfs.Replace(f.cfg.Disk, name, append(data, '\n')); err != nil {
		return err
	}
	f.saved = p
	return nil
}

// Advise adds advice to the errors of sinks that have not received all records. They may be joined.
func Advise(err error, dir string) error {
	var do []string
	for _, e := range backlogs(err) {
		if was := advice.Of(e.err); was != "" && !slices.Contains(do, was) {
			do = append(do, was)
		}
	}
	if rest := ResumeCommands(err, dir); rest != "" {
		return advice.With(err, strings.Join(append(do, "the same command sends the rest, or run: "+rest), "\n"))
	}
	return err
}

// ResumeCommands returns the other commands that send the records that sinks have not received, by the errors of these;
// "" without such errors.
func ResumeCommands(err error, dir string) string {
	var all []string
	for _, e := range backlogs(err) {
		all = append(all, e.rest+" "+dir)
	}
	return strings.Join(all, "; ")
}

// backlogs returns the errors of sinks that have not received all records.
func backlogs(err error) (all []*BacklogError) {
	switch e := err.(type) { //nolint:errorlint // this finds all in the tree, and errors.As the first
	case *BacklogError:
		return []*BacklogError{e}
	case interface{ Unwrap() error }:
		return backlogs(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, backlogs(one)...)
		}
	}
	return all
}

// countLines counts the lines of pages.jsonl after the position.
func (f *Follower) countLines() (n int64, err error) {
	size, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, names[pages]))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	src, err := f.section(pages, f.at.Lengths[pages], size)
	if err != nil {
		return 0, err
	}
	_, err = store.EachLine(src, func([]byte, int64) error {
		n++
		return nil
	})
	return n, err
}
