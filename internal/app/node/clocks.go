package node

import (
	"strings"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// clocks compares this node's clock with those of the nodes whose leases it watches, once with each. Nothing depends on
// it but the times in logs and records.
type clocks struct {
	mu  sync.Mutex // guards below
	met map[strategy.Node]look
}

// A look is how far another node's clock is known.
type look uint8

const (
	stale    look = iota // its lease was seen as it was, perhaps for long
	compared             // it was seen to change
)

const clocksApart = 5 * time.Second // that nobody is told of

// renewed is told of a lease. How far the node's clock is ahead of this one's is returned when it is known for the
// first time, and not small.
func (c *clocks) renewed(e bus.Entry, now time.Time) (of strategy.Node, ahead time.Duration, apart bool) {
	name, isLease := strings.CutPrefix(e.Key, quorum.LeasePrefix)
	of = strategy.Node(name)
	if !isLease || !c.isNews(of) {
		return of, 0, false
	}
	lease, err := quorum.ParseLease(e.Value)
	if err != nil {
		return of, 0, false
	}
	r, err := ParseReport(lease.Report)
	if err != nil || r.Clock.IsZero() {
		return of, 0, false
	}
	ahead = r.Clock.Sub(now.Round(0))
	return of, ahead, ahead.Abs() > clocksApart
}

// isNews reports whether a lease is seen to change for the first time.
func (c *clocks) isNews(n strategy.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.met == nil {
		c.met = map[strategy.Node]look{}
	}
	was, met := c.met[n]
	if !met {
		c.met[n] = stale
		return false
	}
	c.met[n] = compared
	return was == stale
}
