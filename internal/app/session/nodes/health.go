package nodes

import (
	"errors"
	"fmt"
	"time"

	"kumo/internal/app/session"
	"kumo/internal/base/wait"
)

// CheckAlive returns an error if the node or its part of the crawl is stuck, or its folder cannot be written. A node
// that waits for the cluster is alive.
func (n *Node) CheckAlive() error {
	m := n.current.Load()
	if m == nil {
		return nil
	}
	return errors.Join(session.StuckError("node loop", m.node.Silence()), checkCrawl(m.journal, m.crawl))
}

// An aliveChecker is a [session.Session].
type aliveChecker interface {
	CheckAlive() error
	CheckLoops() error
}

// checkCrawl checks a part of a crawl. Commits to its journal wait while the log at the cluster's servers lags.
func checkCrawl(log interface{ Late() bool }, crawl aliveChecker) error {
	if log.Late() {
		return crawl.CheckLoops()
	}
	return crawl.CheckAlive()
}

// waitingLimit is the age of the last read of the crawl's record at which a waiting node is no longer connected.
const waitingLimit = 10 * time.Second

// CheckReady returns an error unless the node takes part in the crawl, or is connected and waits for its start: the
// servers can be written to, its own server has what the others have, and the node holds a lease.
func (n *Node) CheckReady() error {
	if n.leaving.Load() {
		return errors.New("the node is leaving")
	}
	if err := n.cluster.Health(); err != nil {
		return err
	}
	if silent := n.waiting.Silence(); silent > 0 {
		if silent > waitingLimit {
			return fmt.Errorf("the cluster's servers have not answered for %v", silent.Round(time.Second))
		}
		return nil
	}
	m := n.current.Load()
	switch {
	case m == nil || !m.router.Member():
		return errors.New("the node has not joined the crawl yet")
	case !wait.IsAfter(m.router.Until(), time.Now()):
		return errors.New("the node's lease has expired: a majority of the servers has not answered")
	}
	return m.crawl.CheckReady()
}

// Lease returns the time until the node's lease ends, 0 if it has none; how often a lease was not renewed in time; and
// how often the other nodes declared this one dead.
func (n *Node) Lease() (left time.Duration, expired, declaredDead int64) {
	if m := n.current.Load(); m != nil {
		left = max(time.Until(m.router.Until()), 0)
	}
	return left, n.expired.Load(), n.declared.Load()
}
