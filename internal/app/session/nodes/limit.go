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

// maxCounters is how many members count: the first ones of the table. More than one does, so that what a dead one has
// counted is not forgotten.
const maxCounters = 3

// A counter adds up the pages of all nodes, as their leases tell them. It keeps the pages of those that go in the
// registry's totals, and stops the crawl when there are enough. The first members of the table do it. It is as exact as
// leases are young: a few seconds' pages too many are fetched.
type counter struct {
	m        *membership
	limit    atomic.Int64  // 0: none
	kick     chan struct{} // the table is another one: the leases of who has gone are removed once all is settled
	last     node.Pages    // what the leases told the last time; nil: nothing yet
	listener listener

	mu           sync.Mutex                 // guards below
	memberSet    map[strategy.Node]struct{} // members
	order        []strategy.Node            // of them, as the table has it: the first counters
	place        int                        // of this node among them; -1: none
	settledSince time.Time                  // since when no host is on its way from one to another; zero: some are
}

// start has the pages counted until ctx ends; then the channel is closed.
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
		c.m.n.warn(err) // of a bus that is closed, which ends the node, too
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

// quietBeats is after how many beats of an epoch that is settled the leases tell of nothing before it.
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
			c.m.n.Log.Debug("the pages of all nodes are not counted", "err", err)
		}
	}
}

// look adds up. The first of the members notes who has gone, and stops the crawl if that is enough.
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
		if _, stay := stays[n]; !stay && pages > 0 { // its lease may be gone at the next look
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
		return err // c.last is as it was: the next look notes them
	}
	c.last = now
	// as they were when that was read
	if after, _, whole := c.members(); whole && alive == len(stays) && len(after) == len(stays) {
		if err := totals.RaiseKnown(ctx, known); err != nil {
			return err
		}
	}
	sum, limit := before.SumWith(now), c.limit.Load()
	if limit <= 0 || sum < limit {
		return nil
	}
	c.m.n.Log.Info("the crawl has its pages", "pages", sum, "limit", limit)
	return node.Control{Registry: c.m.bus}.StopAtLimit(ctx)
}
