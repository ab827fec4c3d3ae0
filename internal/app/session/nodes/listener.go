package nodes

import (
	"context"
	"errors"
	"maps"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A listener detects which nodes have stopped reporting, by its own clock, because those of the nodes may differ.
type listener struct {
	clocks    map[strategy.Node]time.Time // clock of the node in its last report
	heard     map[strategy.Node]time.Time // when that report was first seen
	lastHeard time.Time                   // time of the last call of hear
	// Beginning of the current uninterrupted period; silent nodes are known silentBeats beats later.
	since time.Time
}

// silentBeats is the number of beats without a new report after which a node counts as silent.
const silentBeats = 4

// hear processes the current leases. After a long pause it starts over, because this node may have been disconnected.
func (l *listener) hear(leases map[strategy.Node]quorum.Lease, now time.Time, beat time.Duration) {
	was := *l
	if now.Sub(l.lastHeard) > silentBeats/2*beat {
		was, l.since = listener{}, now
	}
	l.lastHeard = now
	l.clocks, l.heard = map[strategy.Node]time.Time{}, map[strategy.Node]time.Time{}
	for n, lease := range leases {
		r, err := node.ParseReport(lease.Report)
		if err != nil {
			continue
		}
		l.clocks[n], l.heard[n] = r.Clock, now
		if told, is := was.clocks[n]; is && told.Equal(r.Clock) {
			l.heard[n] = was.heard[n]
		}
	}
}

// isReady reports whether it has listened long enough to know which nodes are silent.
func (l *listener) isReady(now time.Time, beat time.Duration) bool {
	return now.Sub(l.since) > silentBeats*beat
}

// silent reports whether a node has not reported for too long.
func (l *listener) silent(n strategy.Node, now time.Time, beat time.Duration) bool {
	met, is := l.heard[n]
	return is && now.Sub(met) > silentBeats*beat
}

// recordEvents records events on nodes. The first member does so; if it and others are silent, the next counting member
// does.
func (c *counter) recordEvents(ctx context.Context, leases map[strategy.Node]quorum.Lease) {
	now, beat := time.Now(), c.m.n.Timing.Beat
	c.listener.hear(leases, now, beat)
	if !c.listener.isReady(now, beat) { // otherwise a silent node could be recorded as heard again
		return
	}
	silent := func(n strategy.Node) bool { return c.listener.silent(n, now, beat) }
	c.mu.Lock()
	before := c.order[:min(max(c.place, 0), len(c.order))]
	c.mu.Unlock()
	for _, n := range before {
		if !silent(n) {
			return
		}
	}
	err := node.Control{Registry: c.m.bus}.RecordEvents(ctx, maps.Clone(leases), silent)
	if err != nil && !errors.Is(err, bus.ErrStale) && ctx.Err() == nil {
		c.m.n.Log.Debug("cannot record events", "err", err)
	}
}
