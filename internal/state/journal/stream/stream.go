// Package stream implements a journal that is replicated to a remote log.
//
// Each batch goes to the local disk first, and a little later, in the same order, to a log that survives the node and
// its disk. The local journal is authoritative and the log follows it. So the log is never ahead, unless the disk has
// lost durable data.
//
// Opening a log fences it: writes in transit from an earlier process are rejected. Recovering a dead node's state seals
// the node's log: if that node is still alive, it can append nothing more, and gets the reason as an error.
package stream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/state/journal"
)

// Logs is what is needed of a [bus.Logs].
type Logs interface {
	Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error)
	Last(ctx context.Context, log string) (uint64, []byte, error)
	Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error
	Trim(ctx context.Context, log string, before uint64) error
}

var _ Logs = (bus.Logs)(nil)

var (
	// ErrSealed is a log that was closed for good: others have taken its node for dead, and what it held is theirs now.
	ErrSealed = errors.New("the node's log is sealed: it was taken for dead, and what it held belongs to others")
	// ErrFenced is a log that another process has opened since.
	ErrFenced = errors.New("another process goes on with the same log: two nodes run with copies of one state")
	// ErrLost is a local journal that lacks what the log has: it was durable on the disk before it was shipped.
	ErrLost = errors.New("the local journal lacks what was shipped from it: its disk has lost what it had made durable")
	// ErrDamaged is a log that lacks entries between others, or has some that nobody can read.
	ErrDamaged = errors.New("the log is damaged")
	// ErrClosed is a wait for a journal that is closed meanwhile.
	ErrClosed = errors.New("the journal is closed")
)

// Config says how a journal is shipped.
type Config struct {
	MaxLag int64 // bytes that the log may be behind before Append waits; 16 MiB
	// how long it may be behind before Append waits: whoever is taken for dead has that much done again; 5s
	MaxAge  time.Duration
	Timeout time.Duration // of one try to reach the log; 10s
	Backoff time.Duration // before the second try; it doubles up to 32 times that; 100ms
	Warn    func(error)   // told when the log cannot be reached, once until it can; may be nil
}

func (c Config) withDefaults() Config {
	if c.MaxLag <= 0 {
		c.MaxLag = 16 << 20
	}
	if c.MaxAge <= 0 {
		c.MaxAge = 5 * time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	if c.Backoff <= 0 {
		c.Backoff = 100 * time.Millisecond
	}
	if c.Warn == nil {
		c.Warn = func(error) {}
	}
	return c
}

var _ journal.Shipped = (*Journal)(nil)

// A Journal is a local journal that is shipped to a log. Ship, Shipped, Lag, Late, Kept, Trim, Held and Begins
// may be called by many goroutines at once.
type Journal struct {
	local journal.Journal
	to    *writer
	cfg   Config
	stop  context.CancelFunc
	done  chan struct{} // the shipper has ended

	mu           sync.Mutex // guards all below
	queue        []batch    // durable here, and not known to be shipped
	lag          int64      // bytes of these
	shipped      journal.Position
	marks        []mark        // of the log's entries, from where it is trimmed to
	err          error         // why nothing more is shipped
	shuttingDown bool          // Append waits no more
	changed      chan struct{} // closed, and made anew, when one of these has changed
}

// A batch is one of the journal's, and the position after it.
type batch struct {
	data []byte
	end  journal.Position
	at   time.Time // when it came
}

// Open goes on with a log where it ends, and ships what the local journal has beyond that. It tries to reach the log
// until ctx ends, and owns the local journal only if there is no error.
func Open(ctx context.Context, local journal.Journal, logs Logs, name string, cfg Config) (*Journal, error) {
	cfg = cfg.withDefaults()
	j := &Journal{local: local, cfg: cfg, done: make(chan struct{}), changed: make(chan struct{})}
	j.to = newWriter(logs, name, rand.Uint64(), cfg)
	at, err := j.to.open(ctx)
	if err == nil && at > local.End() {
		err = fmt.Errorf("%w: it ends at %x, the log at %x", ErrLost, uint64(local.End()), uint64(at))
	}
	if err != nil {
		return nil, fmt.Errorf("open the log %s: %w", name, err)
	}
	j.shipped = at
	j.marks = []mark{{number: j.to.last, end: at}}
	shipping, stop := context.WithCancel(context.WithoutCancel(ctx))
	j.stop = stop
	go j.ship(shipping)
	if err := j.catchUp(ctx); err != nil {
		j.halt()
		return nil, fmt.Errorf("ship the journal to the log %s from %x: %w", name, uint64(at), err)
	}
	return j, nil
}

// catchUp queues what the local journal has and the log has not.
func (j *Journal) catchUp(ctx context.Context) error {
	return j.local.Replay(j.Shipped(), func(data []byte, end journal.Position) error {
		if err := j.waitForRoom(ctx); err != nil {
			return err
		}
		j.add(data, end)
		return nil
	})
}

// Append adds one batch to the local journal and returns when it is durable there. It waits first while the log is too
// far behind. Once the log is sealed or fenced nothing more is appended.
func (j *Journal) Append(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	if err := j.waitForRoom(context.Background()); err != nil {
		return err
	}
	if err := j.local.Append(data); err != nil {
		return err
	}
	j.add(data, j.local.End())
	return nil
}

// waitForRoom waits until the log is near enough.
func (j *Journal) waitForRoom(ctx context.Context) error {
	return j.await(ctx, func() bool { return j.lag < j.cfg.MaxLag && !j.late() || j.shuttingDown })
}

// late is Late with mu held.
func (j *Journal) late() bool { return len(j.queue) > 0 && time.Since(j.queue[0].at) > j.cfg.MaxAge }

// Late reports whether the log is behind by more than MaxAge: what is done now may have to be done again by others.
func (j *Journal) Late() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.late()
}

// BeginShutdown says that the process is about to end: Append waits for the log no more, however far that is behind. What it
// lacks, the next process ships.
func (j *Journal) BeginShutdown() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.shuttingDown = true
	j.notify()
}

// add queues a copy of a batch.
func (j *Journal) add(data []byte, end journal.Position) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.queue = append(j.queue, batch{append([]byte(nil), data...), end, time.Now()})
	j.lag += int64(len(data))
	j.notify()
}

// notify wakes all who await something. It is called with mu held.
func (j *Journal) notify() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// await waits until ok, which is called with mu held, says so, ctx ends, or nothing more is shipped.
func (j *Journal) await(ctx context.Context, ok func() bool) error {
	for {
		j.mu.Lock()
		fine, err, changed := ok(), j.err, j.changed
		j.mu.Unlock()
		switch {
		case err != nil && !errors.Is(err, ErrClosed):
			return err // even if there is room: nobody wants what is added now
		case fine:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Ship waits until all before a position is in the log.
func (j *Journal) Ship(ctx context.Context, upTo journal.Position) error {
	return j.await(ctx, func() bool { return j.shipped >= upTo })
}

// Shipped is the position up to which the log has the journal.
func (j *Journal) Shipped() journal.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shipped
}

// Lag is how many bytes of batches the log is behind.
func (j *Journal) Lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lag
}

// End is the position after the last batch of the local journal.
func (j *Journal) End() journal.Position { return j.local.End() }

// Replay is the local journal's.
func (j *Journal) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	return j.local.Replay(from, f)
}

// Drop lets go of local batches that end at or before a position and are shipped. The log keeps all; see Trim.
func (j *Journal) Drop(before journal.Position) error { return j.local.Drop(min(before, j.Shipped())) }

// Close closes the local journal. It does not wait for the log: what that lacks, the next one who opens it ships.
func (j *Journal) Close() error {
	j.halt()
	return j.local.Close()
}

// halt ends the shipping.
func (j *Journal) halt() {
	j.stop()
	<-j.done
}
