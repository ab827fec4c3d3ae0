package nodes

import (
	"context"
	"maps"
	"sync"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/budget"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A pageShare applies this node's share of the crawl's page limit to its engine. Before the node has a share, it
// fetches nothing.
type pageShare struct {
	m *membership

	mu      sync.Mutex   // guards below
	limit   int64        // of the crawl; 0: none
	share   budget.Share // in the registry
	ceiling int64        // pages that the engine may fetch
}

func (s *pageShare) setLimit(limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = limit
	s.apply()
}

// watch applies changes of the share until ctx ends.
func (s *pageShare) watch(ctx context.Context) {
	err := s.m.bus.Watch(ctx, node.BudgetKey, func(e bus.Entry) {
		if e.Key != node.BudgetKey {
			return
		}
		b, err := budget.Parse(e.Value)
		if err != nil {
			s.m.n.warn(err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.share = budget.Share{}
		if b != nil {
			s.share = b.Shares[s.m.id.Node()]
		}
		s.apply()
	})
	if ctx.Err() == nil {
		s.m.n.warn(err) // the bus is closed, which also ends the node
	}
}

func (s *pageShare) apply() {
	if s.limit <= 0 {
		s.m.crawl.Engine.SetPageShare(-1)
		return
	}
	s.ceiling = s.m.crawl.Engine.SetPageShare(s.share.Grant)
}

// report returns what the node has used of its share; nil without a limit.
func (s *pageShare) report() *budget.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit <= 0 {
		return nil
	}
	return &budget.Report{Used: s.m.crawl.Engine.CountedPages(), Ceiling: s.ceiling, Round: s.share.Round}
}

// A pageDivider divides the page limit among the nodes. All counting members observe reports, and the first one
// divides.
type pageDivider struct {
	used  map[strategy.Node]int64     // latest reported numbers of pages, also of nodes that are gone
	usage map[strategy.Node]usage     // of nodes with a share
	gone  map[strategy.Node]time.Time // when a node in the budget was first missing
}

// A usage is what a node has used of its share, and since when it has used no more.
type usage struct {
	used  int64
	since time.Time
}

// stalledBeats is the number of beats after which a node that fetches nothing of its share counts as stalled, and
// goneBeats that after which a node that is gone and has no exact number of pages counts with its last report.
const (
	stalledBeats = 5
	goneBeats    = 30
)

func newPageDivider() *pageDivider {
	return &pageDivider{used: map[strategy.Node]int64{}, usage: map[strategy.Node]usage{},
		gone: map[strategy.Node]time.Time{}}
}

// observe returns the nodes that hold leases. It returns false if the report of one is missing: that node may not have
// applied the limit yet.
func (d *pageDivider) observe(leases map[strategy.Node]quorum.Lease, now time.Time, beat time.Duration) (
	nodes map[strategy.Node]budget.Node, complete bool) {
	nodes, complete = map[strategy.Node]budget.Node{}, true
	for n, lease := range leases {
		r, err := node.ParseReport(lease.Report)
		if err == nil && r.Limit != nil {
			d.used[n] = max(d.used[n], r.Limit.Used)
		}
		switch {
		case lease.Revoked:
		case err != nil || r.Limit == nil:
			complete = false
		default:
			was := d.usage[n]
			if was.since.IsZero() || was.used != r.Limit.Used || r.Limit.Used >= r.Limit.Ceiling {
				was = usage{r.Limit.Used, now}
			}
			d.usage[n] = was
			nodes[n] = budget.Node{Report: *r.Limit, Busy: r.Waiting+r.InFlight > 0, Rate: r.Rate,
				Stalled: now.Sub(was.since) > stalledBeats*beat}
		}
	}
	maps.DeleteFunc(d.usage, func(n strategy.Node, _ usage) bool { _, there := nodes[n]; return !there })
	return nodes, complete
}

// divide updates a budget, and reports whether it has changed. isPresent reports whether a node may still fetch, or is
// being recovered.
func (d *pageDivider) divide(b *budget.Budget, limit int64, nodes map[strategy.Node]budget.Node, complete bool,
	isPresent func(strategy.Node) bool, now time.Time, beat time.Duration) (changed bool) {
	for n, s := range b.Shares {
		s.Used = max(s.Used, d.used[n])
		b.Shares[n] = s
		if isPresent(n) {
			delete(d.gone, n)
		} else if d.gone[n].IsZero() {
			d.gone[n] = now
		}
	}
	changed = b.SetUsed(nodes, isPresent, func(n strategy.Node) bool { return now.Sub(d.gone[n]) > goneBeats*beat })
	maps.DeleteFunc(d.gone, func(n strategy.Node, _ time.Time) bool { _, there := b.Shares[n]; return !there })
	if !complete {
		return changed
	}
	return b.Divide(limit, nodes) || changed
}
