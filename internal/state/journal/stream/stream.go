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

// Logs contains the required methods of [bus.Logs].
type Logs interface {
	Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error)
	Last(ctx context.Context, log string) (uint64, []byte, error)
	Read(ctx context.Context, log string, after uint64, f func(number uint64, data []byte) error) error
	Trim(ctx context.Context, log string, before uint64) error
}

var _ Logs = (bus.Logs)(nil)

var (
	// ErrSealed reports a log that was closed permanently: the cluster has declared its node dead and taken over its
	// state.
	ErrSealed = errors.New("the node's log is sealed: the cluster declared it dead and took over its state")
	// ErrFenced reports a log that another process has opened since.
	ErrFenced = errors.New("another process has opened the same log: two nodes run with copies of one state")
	// ErrLost reports a local journal that lacks batches in the log. They were durable on disk before they were
	// shipped.
	ErrLost = errors.New("the local journal lacks batches that were shipped from it: its disk has lost durable data")
	// ErrDamaged reports a log with missing or unreadable entries.
	ErrDamaged = errors.New("the log is damaged")
	// ErrClosed is returned by methods that wait when the journal is closed.
	ErrClosed = errors.New("the journal is closed")
)

// Config configures the shipping of a journal.
type Config struct {
	MaxLag int64 // limit of the log's lag in bytes, after which Append waits; 16 MiB
	// MaxAge is the limit of the log's lag in time, after which Append waits. If the node is declared dead, other nodes
	// repeat the work of that time; 5s
	MaxAge  time.Duration
	Timeout time.Duration // of one attempt to reach the log; 10s
	Backoff time.Duration // before the second attempt; doubles up to 32 times that; 100ms
	Warn    func(error)   // called when the log becomes unreachable, once until it is reachable; may be nil
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

// A Journal is a local journal that is shipped to a log. Ship, Shipped, Lag, Late, Trimmable, Trim, CheckOwner and
// Start may be called concurrently.
type Journal struct {
	local journal.Journal
	to    *writer
	cfg   Config
	stop  context.CancelFunc
	done  chan struct{} // closed when the shipper has ended

	mu           sync.Mutex // guards all below
	queue        []batch    // durable locally, not known to be shipped
	lag          int64      // bytes in the queue
	shipped      journal.Position
	marks        []mark        // entries of the log; the first is where it was last trimmed
	err          error         // why shipping has ended
	shuttingDown bool          // Append does not wait any more
	changed      chan struct{} // closed and replaced when one of these has changed
}

// A batch is a batch of the journal and the position after it.
type batch struct {
	data []byte
	end  journal.Position
	at   time.Time // when it was queued
}

// Open opens a log at its end, and ships the batches of the local journal after that. It retries until ctx ends. It
// owns the local journal only if it returns no error.
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

// catchUp queues the batches of the local journal that the log lacks.
func (j *Journal) catchUp(ctx context.Context) error {
	return j.local.Replay(j.Shipped(), func(data []byte, end journal.Position) error {
		if err := j.waitForRoom(ctx); err != nil {
			return err
		}
		j.add(data, end)
		return nil
	})
}

// Append appends one batch to the local journal and returns when it is durable there. If the log is too far behind, it
// waits first. After the log was sealed or fenced it fails.
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

// waitForRoom waits until the lag of the log is within the limits.
func (j *Journal) waitForRoom(ctx context.Context) error {
	return j.await(ctx, func() bool { return j.lag < j.cfg.MaxLag && !j.late() || j.shuttingDown })
}

// late is Late with mu held.
func (j *Journal) late() bool { return len(j.queue) > 0 && time.Since(j.queue[0].at) > j.cfg.MaxAge }

// Late reports whether the lag of the log exceeds MaxAge. Then other nodes may have to repeat the work done now.
func (j *Journal) Late() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.late()
}

// BeginShutdown prepares the end of the process: Append no longer waits for the log. The next process ships the rest.
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

// notify wakes all waiting calls of await. The caller holds mu.
func (j *Journal) notify() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// await waits until ok returns true, ctx ends, or shipping ends. It calls ok with mu held.
func (j *Journal) await(ctx context.Context, ok func() bool) error {
	for {
		j.mu.Lock()
		fine, err, changed := ok(), j.err, j.changed
		j.mu.Unlock()
		switch {
		case err != nil && !errors.Is(err, ErrClosed):
			return err // even if there is space: the log has another owner
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

// Ship waits until the log contains all data before a position.
func (j *Journal) Ship(ctx context.Context, upTo journal.Position) error {
	return j.await(ctx, func() bool { return j.shipped >= upTo })
}

// Shipped returns the position up to which the log contains the journal.
func (j *Journal) Shipped() journal.Position {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shipped
}

// Lag returns the lag of the log in bytes of batches.
func (j *Journal) Lag() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lag
}

// End returns the position after the last batch of the local journal.
func (j *Journal) End() journal.Position { return j.local.End() }

// Replay replays the local journal.
func (j *Journal) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	return j.local.Replay(from, f)
}

// Drop drops local batches that end at or before a position and are shipped. The log keeps them; see Trim.
func (j *Journal) Drop(before journal.Position) error { return j.local.Drop(min(before, j.Shipped())) }

// Close closes the local journal. It does not wait for the log; the next process ships the rest.
func (j *Journal) Close() error {
	j.halt()
	return j.local.Close()
}

// halt stops the shipper.
func (j *Journal) halt() {
	j.stop()
	<-j.done
}
