package central

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A Policy decides who owns which host. It does so by calling its Leader within its own methods. Each candidate has a
// Policy that follows the log; only Records is also called while another node leads. A Policy is deterministic, and has
// no clock but the Leader's.
type Policy interface {
	// Records returns the state that the log stores for the policy, besides the table; nil if there is none. It is
	// always the same.
	Records() leader.State
	// Elected starts a term.
	Elected()
	// Deposed ends the term, and drops state that is not in the log.
	Deposed()
	// OwnerRequested handles a node's request for the owner of a host that may be assigned. links is the number of
	// links to fetch, as far as known. The node repeats the request until the host has an owner; the policy answers
	// with ReplyWait or RequestProbe until then.
	OwnerRequested(from strategy.Node, host string, links int)
	// Probed handles the result of a probe.
	Probed(p ProbeReport)
	// HolderFound handles a node's report that it holds a host without an owner, which a dead node owned before.
	HolderFound(from strategy.Node, host string)
	// MoveCompleted handles the arrival of a promised host at its owner, with the host's previous row.
	MoveCompleted(host string, r hosttable.Row)
	// LoadReported handles a node's load report, about one per beat.
	LoadReported(load strategy.Load)
	// Offered handles a node's offer to hand over a host that it owns and has paused. The node repeats it until the
	// policy calls Promise or ReplyOwned.
	Offered(o Offer)
	// Withdrawn is called for an offer that is no longer valid.
	Withdrawn(host string)
	// Advance runs all pending work. It is called after the events of each step.
	Advance()
	// NextDue returns the time by which Advance must be called; zero: none.
	NextDue() time.Time
}

// A ProbeReport is the result of a node's probe of a host.
type ProbeReport struct {
	From    strategy.Node
	Host    string
	OK      bool
	Took    time.Duration // connection time
	Network string        // of the host, if known
	Holds   bool          // the node holds the host and did not reach it before
}

// An Offer is a node's offer to hand over a host.
type Offer struct {
	Host     string
	From, To strategy.Node
	Pending  int // URLs
	Row      hosttable.Row
}
