package node

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/bus"
	"kumo/internal/strategy"
)

// WaitingPrefix is what keys in the registry begin with that say of a node that it waits for the crawl's start, and
// from then on that it is about to be a member: it deletes its key when it is one, or ends. The value is a Report.
const WaitingPrefix = "waiting/"

// staleWait is after how long it is not believed any more that a node waits, its own clock taken for right: its process
// may have died.
const staleWait = time.Minute

// Waits reports whether what a node has said of itself under WaitingPrefix is to be believed.
func (r *Report) Waits() bool { return time.Since(r.Clock) < staleWait }

// coming tells the strategy which nodes are about to be members.
func (m *strategyDriver) coming(ctx context.Context) {
	known, synced := map[strategy.Node]bool{}, false
	tell := func() { m.tell(ctx, strategy.Coming{Nodes: slices.Sorted(maps.Keys(known))}) }
	m.n.follow(ctx, WaitingPrefix, func() { synced = true; tell() }, func(e bus.Entry) {
		n := strategy.Node(strings.TrimPrefix(e.Key, WaitingPrefix))
		r, err := ParseReport(e.Value)
		is := e.Value != nil && err == nil && r.Waits() && n != m.n.self
		if is == known[n] {
			return
		}
		if is {
			known[n] = true
		} else {
			delete(known, n)
		}
		if synced {
			tell()
		}
	})
}
