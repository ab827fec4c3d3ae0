package member

import (
	"time"

	"kumo/internal/strategy"
)

// Timing is how long things take between the nodes of a cluster.
type Timing struct {
	Beat time.Duration // between two renewals of a lease
	TTL  time.Duration // how long a lease holds, from before its renewal was asked for
	// how much longer others wait: 2 % of TTL and what a process may stand still between a look at its clock and a request
	Margin time.Duration
	Retry  time.Duration // until a message without an answer is sent again, doubled with each up to eight times as long
	Window int           // chunks that one transfer has read and not seen taken
}

// LAN is for nodes that reach each other within a few milliseconds. A registry that elects a new leader is away for up
// to nine seconds; leases outlive that.
func LAN() Timing {
	return Timing{Beat: 2 * time.Second, TTL: 14 * time.Second, Margin: 2 * time.Second, Retry: 500 * time.Millisecond,
		Window: 16}
}

// WAN is for nodes that are far from each other: LAN but for longer times, and more on its way at once.
func WAN() Timing {
	return Timing{Beat: 5 * time.Second, TTL: 45 * time.Second, Margin: 5 * time.Second, Retry: 3 * time.Second,
		Window: 32}
}

// Config is what a Member is made of.
type Config struct {
	Self     strategy.Node
	Instance uint64          // tells processes with the same identity apart; never 0
	Joined   bool            // the identity was a member's before, as Enter has noted
	Arrived  []Transfer      // that came whole since the last settled epoch that the holder knows of
	Forgot   []Transfer      // Whole of all Forgets since then
	Partial  []Transfer      // that an earlier process has taken chunks of, and that did not come whole
	Place    strategy.Placer // nil: hosts are placed by a strategy that is no Placer, as Route says
	// Slot chooses the place of a node in the table of logical nodes; -1 where there is none. Nil: none has one.
	Slot func(members []strategy.Member, node strategy.Node) int
	// what all nodes of a cluster must agree on, in words: the strategy and its settings, the version of what is said
	Layout string
	Timing Timing
	// ParseTable; another may remember what it has read: a table is never changed
	Parse func(value []byte) (*Table, error)
	Seed  uint64 // for the spread of what many nodes would do at once
}
