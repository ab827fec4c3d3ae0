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

// A listener knows when it has met something new of nodes, by its own clock: theirs may be others.
type listener struct {
	clocks    map[strategy.Node]time.Time // what a node's clock was when it told something last
	heard     map[strategy.Node]time.Time // when that was met
	lastHeard time.Time                   // when it has listened last
	// since when it has listened without a pause: who is silent it knows silentBeats beats later
	since time.Time
}

// silentBeats is after how many beats a node that tells nothing new is silent.
const silentBeats = 4

// hear listens. Who has not heard anybody for longer than a beat or two was cut off from the servers itself.
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

// knows reports whether it has listened for long enough to know who is silent.
func (l *listener) isReady(now time.Time, beat time.Duration) bool {
	return now.Sub(l.since) > silentBeats*beat
}

// silent reports whether a node has told nothing new for so long.
func (l *listener) silent(n strategy.Node, now time.Time, beat time.Duration) bool {
	met, is := l.heard[n]
	return is && now.Sub(met) > silentBeats*beat
}

// recordEvents has what has happened to nodes noted, for all who look: by the first member, or, where nothing is heard of those
// before it, by another one of those that count.
func (c *counter) recordEvents(ctx context.Context, leases map[strategy.Node]quorum.Lease) {
	now, beat := time.Now(), c.m.n.Timing.Beat
	c.listener.hear(leases, now, beat)
	if !c.listener.isReady(now, beat) { // of one that was noted as silent it would be noted that it is heard of again
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
		c.m.n.Log.Debug("what has happened is not noted", "err", err)
	}
}
