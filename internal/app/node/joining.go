package node

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// WaitingPrefix is the prefix of the registry keys of nodes that wait for the crawl's start, and then are about to
// join. A node deletes its key when it is a member, or ends. The value is a Report.
const WaitingPrefix = "waiting/"

// StrategyDataKey is the registry key of data that a user supplied for the strategy with the crawl.
const StrategyDataKey = "given"

func (n *Node) watchStrategyData(ctx context.Context) {
	n.watchKey(ctx, StrategyDataKey, func() {}, func(e bus.Entry) {
		n.call(ctx, func() { n.driver.AddStrategyEvent(strategy.UserData{Data: e.Value}) })
	})
}

// waitingTTL is the age after which a waiting node's key is ignored, by the node's own clock: its process may have
// died.
const waitingTTL = time.Minute

// IsWaiting reports whether the report of a waiting node is recent enough.
func (r *Report) IsWaiting() bool { return time.Since(r.Clock) < waitingTTL }

func (n *Node) watchJoining(ctx context.Context) {
	known, synced := map[strategy.Node]bool{}, false
	tell := func() {
		e := strategy.Joining{Nodes: slices.Sorted(maps.Keys(known))}
		n.call(ctx, func() { n.driver.AddStrategyEvent(e) })
	}
	n.watchKey(ctx, WaitingPrefix, func() { synced = true; tell() }, func(e bus.Entry) {
		of := strategy.Node(strings.TrimPrefix(e.Key, WaitingPrefix))
		r, err := ParseReport(e.Value)
		is := e.Value != nil && err == nil && r.IsWaiting() && of != n.self
		if is == known[of] {
			return
		}
		if is {
			known[of] = true
		} else {
			delete(known, of)
		}
		if synced {
			tell()
		}
	})
}
