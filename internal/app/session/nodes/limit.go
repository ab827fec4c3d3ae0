package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// maxCounters is the number of counting members, the first ones of the table. There are several, so that the counts of
// a dead one are not lost.
const maxCounters = 3

// A counter sums up the pages of all nodes, from their leases. It saves the counts of departed nodes in the registry's
// totals, and stops the crawl at its page limit. The first members of the table run it. Leases are a few seconds old,
// so the crawl exceeds the limit accordingly.
type counter struct {
	m        *membership
	limit    atomic.Int64  // 0: none
	kick     chan struct{} // signals a new table: leases of departed nodes are deleted soon after
	last     node.Pages    // counts of the last leases; nil: none yet
	listener listener

	mu           sync.Mutex                 // guards below
	memberSet    map[strategy.Node]struct{} // members
	order        []strategy.Node            // the first maxCounters members in the table
	place        int                        // this node's index in the table; -1: none
	settledSince time.Time                  // time since when no host is moving; zero: some are
}

// start starts counting until ctx ends; then the channel is closed.
func (c *counter) start(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	var both sync.WaitGroup
	both.Go(func() { c.watch(ctx) })
	both.Go(func() { c.run(ctx) })
	go func() { both.Wait(); close(ended) }()
	return ended
}

func (c *counter) watch(ctx context.Context) {
	err := c.m.bus.Watch(ctx, quorum.TableKey, func(e bus.Entry) {
		if e.Key != quorum.TableKey || e.Value == nil {
			return
		}
		if t, err := quorum.ParseTable(e.Value); err == nil {
			c.setTable(t)
			wait.Wake(c.kick)
		}
	})
	if ctx.Err() == nil {
		c.m.n.warn(err) // the bus is closed, which also ends the node
	}
}

func (c *counter) setTable(t *quorum.Table) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.memberSet, c.place = make(map[strategy.Node]struct{}, len(t.Members)), -1
	if t.Epoch != t.Finalized {
		c.settledSince = time.Time{}
	} else if c.settledSince.IsZero() {
		c.settledSince = time.Now()
	}
	c.order = nil
	for i, m := range t.Members {
		if i < maxCounters {
			c.order = append(c.order, m.Node)
		}
		c.memberSet[m.Node] = struct{}{}
		if m.Node == c.m.id.Node() {
			c.place = i
		}
	}
}

func (c *counter) members() (stays map[strategy.Node]struct{}, place int, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memberSet, c.place, !c.settledSince.IsZero() && time.Since(c.settledSince) > quietBeats*c.m.n.Timing.Beat
}

// quietBeats is the number of beats in a settled epoch after which no lease is from an earlier one.
const quietBeats = 3

func (c *counter) run(ctx context.Context) {
	tick := time.NewTicker(c.m.n.Timing.Beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.kick:
		}
		stays, place, _ := c.members()
		if place < 0 || place >= maxCounters {
			c.last, c.listener = nil, listener{}
			continue
		}
		if err := c.count(ctx, stays, place == 0); err != nil && ctx.Err() == nil {
			c.m.n.Log.Debug("cannot count the pages of all nodes", "err", err)
		}
	}
}

// count sums up the pages. The first member saves the counts of departed nodes, and stops the crawl at its limit.
func (c *counter) count(ctx context.Context, stays map[strategy.Node]struct{}, first bool) error {
	leases, err := node.Control{Registry: c.m.bus}.Leases(ctx)
	if err != nil {
		return err
	}
	c.recordEvents(ctx, leases)
	now, known, alive := node.Pages{}, 0, 0
	for n, lease := range leases {
		r, err := node.ParseReport(lease.Report)
		if err != nil {
			continue
		}
		now[n] = r.Pages
		if _, stay := stays[n]; stay && !lease.Revoked {
			known, alive = known+r.Known, alive+1
		}
	}
	gone := node.Pages{}
	for n, pages := range c.last {
		if _, there := now[n]; !there {
			gone[n] = pages
		}
	}
	for n, pages := range now {
		if _, stay := stays[n]; !stay && pages > 0 { // its lease may be gone next time
			gone[n] = pages
		}
	}
	if !first {
		c.last = now
		return nil
	}
	totals := node.Totals{Registry: c.m.bus}
	before, err := totals.AddDeparted(ctx, gone)
	if err != nil {
		return err // c.last is unchanged, so the next call saves them
	}
	c.last = now
	// The members must not have changed since the leases were read.
	if after, _, whole := c.members(); whole && alive == len(stays) && len(after) == len(stays) {
		if err := totals.RaiseKnown(ctx, known); err != nil {
			return err
		}
	}
	sum, limit := before.SumWith(now), c.limit.Load()
	if limit <= 0 || sum < limit {
		return nil
	}
	c.m.n.Log.Info("the crawl has reached its page limit", "pages", sum, "limit", limit)
	return node.Control{Registry: c.m.bus}.StopAtLimit(ctx)
}
