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

// A Config says what is followed, and where it goes.
type Config struct {
	Dir  string // the crawl's folder
	Disk vfs.FS
	Name string // the sink's, for people and for the note: without its password
	// Open reaches the sink.
	Open func(context.Context) (sink.Sink, error)
	Now  func() time.Time
	Wait func(context.Context, time.Duration) error // returns after a time, or with the context's error
	// how long a sink that takes nothing is waited for once the crawl is over
	Patience time.Duration
	// PositionFile is the file that says how far the sink is; "": one in the crawl's state.
	PositionFile string
	// ResumeCommand is the command that sends what waits once the crawl is over, but for the folder; "": kumo export.
	ResumeCommand string
	// BatchDelay is how long records are waited for until they are sent together; 0: half a second.
	BatchDelay time.Duration
	// OnRestart is called before all records are sent from the first on; nil: nothing is to be done.
	OnRestart func() error
	// Lock keeps others from sending to the sink at the same time, from Begin to the end of Run. nil: nothing does.
	Lock func() (io.Closer, error)
	// ID is what the sink has that was sent to from the first record on, and no other: a note counts for that alone. "" is
	// none. nil: notes count for any.
	ID func() (string, error)
	// OnFailure and Works are told when the sink begins not to take records, and when it takes them again.
	OnFailure  func(err error)
	OnRecovery func()
}

// The files that are followed.
const (
	pages = iota
	texts
	fields
)

var names = [...]string{pages: "pages.jsonl", texts: "text.jsonl", fields: "fields.jsonl"}

type lengths [len(names)]int64

var _ store.Store = (*Follower)(nil)

// A Follower sends a crawl's records to a sink. Its methods as a store are the engine's, as those of the other stores.
type Follower struct {
	cfg    Config
	put    atomic.Int64 // lines that pages.jsonl got in this run
	done   atomic.Int64 // lines that the sink needs no more
	before atomic.Int64 // lines that waited when the run began

	// recordOf this run
	sent, bytes       atomic.Int64 // records
	failures, retries atomic.Int64 // tries

	marked lengths // at the last Mark; the engine's

	mu      sync.Mutex
	durable lengths
	over    bool
	failure string        // it does not take records; "" if it does
	oldest  time.Time     // visit that is to be sent; zero: it is not known
	wake    chan struct{} // has something when there is more to send, or the crawl is over

	lock io.Closer // nil: nothing is
	sink sink.Sink // nil: it is to be reached
	reader
}

// New makes a follower. It is put behind all other stores of the crawl.
func New(cfg Config) *Follower {
	return &Follower{cfg: cfg, wake: make(chan struct{}, 1)}
}

// Put is Store's: only a count.
func (f *Follower) Put(rec *page.Record) error {
	if rec.Response != nil && !rec.Robots {
		f.put.Add(1)
	}
	return nil
}

// PutSkip is Store's.
func (f *Follower) PutSkip(*page.Skip) error { return nil }

// Mark is Store's: the files have whole records only now. It has none of its own.
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

// Sync is Store's.
func (f *Follower) Sync() error { return nil }

// Finalize is Store's: the journal has what was marked.
func (f *Follower) Finalize() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.durable = f.marked
	f.notify()
	return nil
}

// Close is Store's.
func (f *Follower) Close() error { return nil }

// End says that the crawl is over: what is there is all there is.
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

// Status says how far the sink is. Waiting is about right.
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

// An BacklogError is a sink that has not taken all.
type BacklogError struct {
	stats.Sink
	rest string // the command that sends the rest, beside the one that crawls
	err  error
}

func (e *BacklogError) Error() string {
	return fmt.Sprintf("%d records wait for %s: %v", e.Waiting, e.Sink.Sink, e.err)
}

func (e *BacklogError) Unwrap() error { return e.err }

const (
	firstPause        = 250 * time.Millisecond
	longestPause      = 30 * time.Second
	defaultBatchDelay = 500 * time.Millisecond // until what came is sent, so that batches are not small
)

// Run sends until End was called and the sink has all, or takes nothing any more (an [BacklogError]), or ctx ends. Begin
// comes before.
func (f *Follower) Run(ctx context.Context) (err error) {
	defer func() {
		if f.sink != nil {
			err = errors.Join(err, f.sink.Close())
		}
		err = errors.Join(err, f.savePosition(), f.reader.close(), f.unlock())
	}()
	var since time.Time // from when on it may be waited for: of the last success, or of the crawl's end
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
			// none waits, of those neither that were put before Begin, and counted twice
			f.before.Store(f.done.Load() - f.put.Load())
			return nil
		default:
			f.setWorking()
			select {
			case <-f.wake:
			case <-ctx.Done():
			}
			if _, over := f.status(); !over && ctx.Err() == nil {
				_ = f.cfg.Wait(ctx, cmp.Or(f.cfg.BatchDelay, defaultBatchDelay)) // the context's end is seen above
			}
		}
	}
}

// backlogError is the error of a sink that has not taken all; nil if none waits.
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
	f.mu.Unlock()
	f.failures.Add(1)
	if first && f.cfg.OnFailure != nil {
		f.cfg.OnFailure(err)
	}
}

func (f *Follower) setWorking() {
	f.mu.Lock()
	again := f.failure != ""
	f.failure = ""
	f.mu.Unlock()
	if again && f.cfg.OnRecovery != nil {
		f.cfg.OnRecovery()
	}
}

// A sinkError is the sink's, and may be over later, whatever it is: somebody may mend it while the crawl goes on.
type sinkError struct{ err error }

func (e *sinkError) Error() string { return e.err.Error() }
func (e *sinkError) Unwrap() error { return e.err }

// step sends a batch, if there is something to send.
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
		if f.sink == nil {
			if f.sink, err = f.cfg.Open(ctx); err != nil {
				f.sink = nil
				f.rollback()
				return false, &sinkError{err}
			}
			if same, err := f.matchesSink(f.saved); f.saved.ID != "" && !same {
				f.rollback()
				return false, &sinkError{errors.Join(sink.ErrDataLost, err)}
			}
		}
		if err := f.sink.Put(ctx, batch); err != nil {
			f.rollback()
			return false, &sinkError{err}
		}
	}
	f.at.Lengths[pages] = next
	f.commit()
	f.setOldest(time.Time{})
	f.sent.Add(int64(len(batch)))
	for i := range batch {
		f.bytes.Add(int64(batch[i].Size()))
	}
	f.done.Add(lines)
	return true, f.maybeSavePosition()
}

// setOldest notes the visit of the first record that is to be sent.
func (f *Follower) setOldest(first time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest = first
}

// maybeSavePosition keeps the position, once a second at most.
func (f *Follower) maybeSavePosition() error {
	now := f.cfg.Now()
	if now.Sub(f.savedAt) < time.Second {
		return nil
	}
	f.savedAt = now
	if err := f.savePosition(); !vfs.IsFull(err) { // Run's last one says so
		return err
	}
	return nil
}

// A position is how far the sink has a crawl's files, as it is noted.
type position struct {
	Sink    string
	Lengths lengths
	Behind  string   // what lies before the position in pages.jsonl, to see whether that is the same file
	Without []string `json:",omitempty"` // files that were not there
	ID      string   `json:",omitempty"` // the sink's own
}

func (f *Follower) positionFile() string {
	if f.cfg.PositionFile != "" {
		return f.cfg.PositionFile
	}
	sum := sha256.Sum256([]byte(f.cfg.Name))
	return filepath.Join(f.cfg.Dir, "state", "sinks", "crawl-"+hex.EncodeToString(sum[:8])+".json")
}

// Begin reads how far the sink was, and counts what waits. It is called once the crawl's folder is open, before the
// crawl goes on.
func (f *Follower) Begin() (err error) {
	if f.cfg.Lock != nil {
		if f.lock, err = f.cfg.Lock(); err != nil {
			return err
		}
	}
	if err := f.load(); err != nil {
		return errors.Join(fmt.Errorf("read what waits for %s: %w", f.cfg.Name, err), f.reader.close(), f.unlock())
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

// WaitForData waits until a crawl has told it that there is something in its files; false if it is over without.
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

// FollowStatic has it follow files in which nothing is written, as they are.
func (f *Follower) FollowStatic() error {
	if _, err := f.Mark(); err != nil {
		return err
	}
	return f.Finalize()
}

// restart begins again with the first record.
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
	f.reader = newReader(f.cfg.Disk, f.cfg.Dir)
	f.at.Sink = f.cfg.Name
	if f.cfg.OnRestart != nil {
		return f.cfg.OnRestart()
	}
	return nil
}

func (f *Follower) load() error {
	f.reader = newReader(f.cfg.Disk, f.cfg.Dir)
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
	waiting, err := f.countLines()
	f.before.Store(waiting)
	return err
}

// matchesFiles reports whether a position is one of the files that are there: not of a crawl that was begun anew, or repaired.
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

// matchesSink reports whether a position is that of the sink that is there.
func (f *Follower) matchesSink(p position) (bool, error) {
	if f.cfg.ID == nil {
		return true, nil
	}
	id, err := f.cfg.ID()
	return err == nil && id != "" && id == p.ID, err
}

// hasNewFiles reports whether pages that were sent before a position have texts or fields now that they had not: the crawl
// was told only later to have any, and has made them of all pages since, in the order of these. All is sent again then.
func (f *Follower) hasNewFiles(p position) bool {
	return p.Lengths[pages] > 0 && slices.ContainsFunc(p.Without, func(name string) bool {
		size, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, name))
		return err == nil && size > 0
	})
}

// missingFiles are the files that are not there.
func (f *Follower) missingFiles() (all []string) {
	for _, i := range []int{texts, fields} {
		if _, err := f.cfg.Disk.Size(filepath.Join(f.cfg.Dir, names[i])); errors.Is(err, fs.ErrNotExist) {
			all = append(all, names[i])
		}
	}
	return all
}

// savePosition keeps the position.
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

// Advise says what is to be done about a sink that has not taken all.
func Advise(err error, dir string) error {
	e, is := errors.AsType[*BacklogError](err)
	if !is {
		return err
	}
	do := fmt.Sprintf("the same command sends the rest, as does %s %s", e.rest, dir)
	if was := advice.Of(e.err); was != "" {
		do = was + "\n" + do
	}
	return advice.With(err, do)
}

// countLines counts the lines of pages.jsonl behind the position.
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
