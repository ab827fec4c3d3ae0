package crawl

import (
	"context"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/state/frontier"
)

// Turns permits requests to hosts that other crawls visit, too. Workers call it concurrently.
type Turns interface {
	// Acquire asks for a request to a host. delay is the crawl's delay between requests to the host. If the request is
	// permitted, the caller calls end when it is over, with the wait until the crawl's next request to the host, or
	// with made false if there was none. Otherwise end is nil, and the caller asks again after retry.
	Acquire(host string, delay time.Duration) (end func(wait time.Duration, made bool), retry time.Duration)
}

// Resources are those of the process that several crawls share. Its waits return false if ctx ends, or end is closed,
// before.
type Resources interface {
	AcquireSlot(ctx context.Context, end <-chan struct{}) bool // waits for one of the process's connections
	ReleaseSlot()
	AwaitAction(ctx context.Context, end <-chan struct{}) bool // waits until the process's rate permits a request
}

// acquireSlot waits for a connection of the process, if crawls share them. It returns false if ctx ends or the host is
// released before.
func (w *worker) acquireSlot(ctx context.Context) bool {
	if w.visits.resources == nil {
		return true
	}
	w.slot = w.visits.resources.AcquireSlot(ctx, w.released)
	return w.slot
}

// releaseSlot returns the connection of a visit that is over.
func (w *worker) releaseSlot() {
	if w.slot {
		w.slot = false
		w.visits.resources.ReleaseSlot()
	}
}

// awaitRate waits until the crawl's rate, and that of the process, permit a request. It returns false if ctx ends or
// the host is released before.
func (w *worker) awaitRate(ctx context.Context) bool {
	if w.visits.resources != nil && !w.visits.resources.AwaitAction(ctx, w.released) {
		return false
	}
	return w.visits.limits.rate.wait(ctx, w.released)
}

// A turn is the permission of one visit.
type turn struct {
	end       func(wait time.Duration, made bool) // nil: there is none
	requested bool
}

// acquireTurn acquires the turn of the host of the visit's URL. If it returns false, the visit is postponed.
func (w *worker) acquireTurn(v *frontier.Visit) bool {
	if w.visits.turns == nil {
		return true
	}
	end, retry := w.visits.turns.Acquire(item.HostOfSlice(v.Host), v.Delay())
	if end == nil {
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, retry)
		return false
	}
	w.turn = turn{end: end}
	return true
}

// release ends the turn of a visit that is over.
func (t *turn) release(v *frontier.Visit) {
	if t.end != nil {
		t.end(v.Wait(), t.requested)
	}
	*t = turn{}
}
