package nodes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/budget"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// maxCounters is the number of counting members, the first ones of the table. There are several, so that the counts of
// a dead one are not lost.
const maxCounters = 3

// A counter sums up the pages of all nodes, from their leases. It saves the counts of departed nodes in the registry's
// totals, divides the page limit among the nodes, and stops the crawl at its limits. The first members of the table run
// it.
type counter struct {
	m        *membership
	kick     chan struct{} // signals new limits, or a new table: leases of departed nodes are deleted soon after
	divider  *pageDivider  // this and the next fields belong to run
	last     latest        // counts of the last leases
	listener listener

	mu           sync.Mutex // guards below
	limits       desired.Limits
	run          runTime
	memberSet    map[strategy.Node]struct{} // members
	departing    []strategy.Node            // nodes whose hosts are being transferred
	order        []strategy.Node            // the first maxCounters members in the table
	place        int                        // this node's index in the table; -1: none
	settledSince time.Time                  // time since when no host is moving; zero: some are
}

// start starts counting until ctx ends; then the channel is closed.
func (c *counter) start(ctx context.Context) <-chan struct{} {
	ended := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() { c.watch(ctx) })
	all.Go(func() { c.m.share.watch(ctx) })
	all.Go(func() { c.m.shareResults(ctx) })
	all.Go(func() { c.countPeriodically(ctx) })
	go func() { all.Wait(); close(ended) }()
	return ended
}

// latest has the last reported counts of nodes; its maps are nil if there are none yet.
type latest struct{ pages, bytes node.Pages }

// gone returns the counts of the nodes whose leases are deleted, or may be deleted next time.
func gone(last, now node.Pages, stays map[strategy.Node]struct{}) node.Pages {
	gone := node.Pages{}
	for n, count := range last {
		if _, there := now[n]; !there && count > 0 {
			gone[n] = count
		}
	}
	for n, count := range now {
		if _, stay := stays[n]; !stay && count > 0 {
			gone[n] = count
		}
	}
	return gone
}

func (c *counter) setLimits(limits desired.Limits) {
	c.mu.Lock()
	c.limits = limits
	c.mu.Unlock()
	c.m.share.setLimit(limits.Pages)
	wait.Wake(c.kick)
}

func (c *counter) currentLimits() desired.Limits {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.limits
}

// A runTime measures the time since the start of the crawl with this node's clock, from when the node began to run. A
// node that begins later adopts the time that others have measured, so that clocks need not agree.
type runTime struct {
	started time.Time // by the clock of the start's author: identifies the start
	began   time.Time
}

func (r *runTime) adopt(other *node.Run, now time.Time) {
	if other == nil || !other.Started.Equal(r.started) {
		return
	}
	if began := now.Add(-time.Duration(other.Seconds * float64(time.Second))); began.Before(r.began) {
		r.began = began
	}
}

func (c *counter) beginRun(started time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.run = runTime{started, time.Now()}
}

// runTime returns the time since the start; nil without a limit.
func (c *counter) runTime() *node.Run {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.limits.Time <= 0 {
		return nil
	}
	return &node.Run{Started: c.run.started, Seconds: time.Since(c.run.began).Seconds()}
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
	c.order, c.departing = nil, slices.Concat(t.Leaving, t.Failed)
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

// isPresent reports whether a node takes part, or its hosts are being transferred.
func (c *counter) isPresent(n strategy.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, is := c.memberSet[n]
	return is || slices.Contains(c.departing, n)
}

// allReport reports whether nodes contains all members.
func (c *counter) allReport(nodes map[strategy.Node]budget.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.memberSet {
		if _, reports := nodes[n]; !reports {
			return false
		}
	}
	return true
}

func (c *counter) members() (stays map[strategy.Node]struct{}, place int, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memberSet, c.place, !c.settledSince.IsZero() && time.Since(c.settledSince) > quietBeats*c.m.n.Timing.Beat
}

// quietBeats is the number of beats in a settled epoch after which no lease is from an earlier one.
const quietBeats = 3

// limitChecks is the number of counts per beat while there are limits, because nodes wait for their shares.
const limitChecks = 2

func (c *counter) countPeriodically(ctx context.Context) {
	tick := time.NewTicker(c.m.n.Timing.Beat / limitChecks)
	defer tick.Stop()
	for i := 1; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if c.currentLimits() == (desired.Limits{}) && i%limitChecks != 0 {
				continue
			}
		case <-c.kick:
		}
		stays, place, _ := c.members()
		if place < 0 || place >= maxCounters {
			c.last, c.listener, c.divider = latest{}, listener{}, newPageDivider()
			continue
		}
		if err := c.count(ctx, stays, place == 0); err != nil && ctx.Err() == nil && !errors.Is(err, bus.ErrStale) {
			c.m.n.Log.Debug("cannot count the pages of all nodes", "err", err)
		}
	}
}

// count sums up the pages. The first member saves the counts of departed nodes, and stops the crawl at its limits.
func (c *counter) count(ctx context.Context, stays map[strategy.Node]struct{}, first bool) error {
	leases, err := node.Control{Registry: c.m.bus}.Leases(ctx)
	if err != nil {
		return err
	}
	c.recordEvents(ctx, leases)
	nodes, complete := c.divider.observe(leases, time.Now(), c.m.n.Timing.Beat)
	now, known, alive := latest{node.Pages{}, node.Pages{}}, 0, 0
	for n, lease := range leases {
		r, err := node.ParseReport(lease.Report)
		if err != nil {
			continue
		}
		now.pages[n], now.bytes[n] = r.Pages, r.Bytes
		c.mu.Lock()
		c.run.adopt(r.Run, time.Now())
		c.mu.Unlock()
		if _, stay := stays[n]; stay && !lease.Revoked {
			known, alive = known+r.Known, alive+1
		}
	}
	if !first {
		c.last = now
		return nil
	}
	totals := node.Totals{Registry: c.m.bus}
	departed, err := totals.AddDeparted(ctx, gone(c.last.pages, now.pages, stays))
	if err != nil {
		return err // c.last is unchanged, so the next call saves them
	}
	limits, bytes := c.currentLimits(), int64(0)
	if limits.Bytes > 0 {
		departed, err := totals.AddDepartedBytes(ctx, gone(c.last.bytes, now.bytes, stays))
		if err != nil {
			return err
		}
		bytes = departed.SumWith(now.bytes)
	}
	c.last = now
	// The members must not have changed since the leases were read.
	if after, _, whole := c.members(); whole && alive == len(stays) && len(after) == len(stays) {
		if err := totals.RaiseKnown(ctx, known); err != nil {
			return err
		}
	}
	for n := range now.pages {
		if !leases[n].Revoked {
			delete(departed, n)
		}
	}
	pages, err := c.divide(ctx, limits.Pages, nodes, complete, departed)
	if err != nil {
		return err
	}
	ran := time.Duration(0)
	if r := c.runTime(); r != nil {
		ran = time.Duration(r.Seconds * float64(time.Second))
	}
	if why := limits.Reached(pages, bytes, ran); why != "" {
		c.m.n.Log.Info("the crawl has reached its --"+why, "pages", pages, "bytes", bytes, "time", ran.Round(time.Second))
		return node.Control{Registry: c.m.bus}.StopAtLimit(ctx, why)
	}
	return nil
}

// divide divides the page limit, and returns the number of pages that count against it. departed has the pages of
// departed nodes. Recrawls of nodes that departed before the limit was set count, too: only the sum is recorded.
func (c *counter) divide(ctx context.Context, limit int64, nodes map[strategy.Node]budget.Node, complete bool,
	departed node.Pages) (pages int64, err error) {
	control := node.Control{Registry: c.m.bus}
	was, rev, err := control.Budget(ctx)
	if err != nil || was == nil && limit <= 0 {
		return 0, err
	}
	if limit <= 0 {
		return 0, control.PutBudget(ctx, nil, rev)
	}
	if was == nil && !c.allReport(nodes) {
		return 0, nil // the pages of a member without a lease would never count if it departs
	}
	b := budget.New(departed.SumWith(nil), nodes)
	if was != nil {
		b = was.Clone()
	}
	isPresent := func(n strategy.Node) bool {
		_, holdsLease := nodes[n]
		return holdsLease || c.isPresent(n)
	}
	if c.divider.divide(b, limit, nodes, complete, isPresent, time.Now(), c.m.n.Timing.Beat) {
		if err := control.PutBudget(ctx, b, rev); err != nil {
			return 0, err
		}
	}
	return b.Used(), nil
}
