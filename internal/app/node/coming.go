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

// WaitingPrefix is what keys in the registry begin with that say of a node that it waits for the crawl's start, and
// from then on that it is about to be a member: it deletes its key when it is one, or ends. The value is a Report.
const WaitingPrefix = "waiting/"

// StrategyDataKey is where the registry has what a person has given the strategy, with the crawl.
const StrategyDataKey = "given"

func (n *Node) watchStrategyData(ctx context.Context) {
	n.watchKey(ctx, StrategyDataKey, func() {}, func(e bus.Entry) {
		n.call(ctx, func() { n.driver.AddStrategyEvent(strategy.UserData{Data: e.Value}) })
	})
}

// waitingTTL is after how long it is not believed any more that a node waits, its own clock taken for right: its process
// may have died.
const waitingTTL = time.Minute

// IsWaiting reports whether what a node has said of itself under WaitingPrefix is to be believed.
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
