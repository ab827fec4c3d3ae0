package node

import (
	"strings"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// A clockCheck compares this node's clock with those of the nodes whose leases it watches, once per node. Only times in
// logs and records depend on it.
type clockCheck struct {
	mu   sync.Mutex // guards below
	seen map[strategy.Node]clockState
}

// A clockState is the progress of the comparison with one node.
type clockState uint8

const (
	stale    clockState = iota // its lease was seen once; it may be old
	compared                   // its lease was seen to change
)

const maxClockSkew = 5 * time.Second // tolerated difference

// renewed handles a lease. On a lease's first change, it returns how far the node's clock is ahead of this one's; apart
// reports whether the difference is large.
func (c *clockCheck) renewed(e bus.Entry, now time.Time) (of strategy.Node, ahead time.Duration, apart bool) {
	name, isLease := strings.CutPrefix(e.Key, quorum.LeasePrefix)
	of = strategy.Node(name)
	if !isLease || !c.isFirstChange(of) {
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
	return of, ahead, ahead.Abs() > maxClockSkew
}

// isFirstChange reports whether a lease changes for the first time.
func (c *clockCheck) isFirstChange(n strategy.Node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = map[strategy.Node]clockState{}
	}
	was, met := c.seen[n]
	if !met {
		c.seen[n] = stale
		return false
	}
	c.seen[n] = compared
	return was == stale
}
