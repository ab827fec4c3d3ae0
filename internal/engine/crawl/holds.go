package crawl

import (
	"context"
	"sync/atomic"

	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// holds blocks workers, and calls that bring URLs, while the crawl has no room, is offline or is paused.
type holds struct {
	pause    valve
	disk     diskGuard
	outages  *outageMonitor
	outgoing *outgoing
	limits   *limits
	frontier *frontier.Frontier
	known    *known
	received atomic.Int64 // calls that brought links, seeds or hosts
}

// admit waits for room for links, dispatched URLs or hosts from another node, and counts the call.
func (h *holds) admit(ctx context.Context) error {
	h.awaitRoom(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	h.received.Add(1)
	return nil
}

// awaitRoom waits until the context ends or there is room: on the disk, in the memory that seen and the digests may use
// until a checkpoint, and in the frontier, whose disk may be too slow.
func (h *holds) awaitRoom(ctx context.Context) {
	h.disk.full.await(ctx)
	h.frontier.WaitForRoom(ctx)
	if h.known.db != nil {
		_ = h.known.db.Room(ctx)
	}
	if d, ok := h.known.digests.(*seen.Digests); ok {
		_ = d.Room(ctx)
	}
}

// awaitRelease waits while the engine is paused or offline, its outbox is full, or its share of the page limit is used.
func (h *holds) awaitRelease(ctx context.Context) {
	for h.held() && ctx.Err() == nil {
		h.pause.await(ctx)
		h.outages.await(ctx)
		h.outgoing.full.await(ctx)
		h.limits.shareUsed.await(ctx)
	}
}

// held reports whether no new URL may be visited.
func (h *holds) held() bool {
	return h.pause.shut() || h.outages.shut() || h.outgoing.full.shut() || h.limits.shareUsed.shut()
}
