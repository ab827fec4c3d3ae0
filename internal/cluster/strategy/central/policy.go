package central

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/cluster/strategy/leader"
)

// A Policy decides whose hosts are, by what it calls of its Leader, within its methods. Each candidate has one, which
// follows the log; but for Records they are called only while its node leads. It is deterministic, and has no clock but
// the Leader's.
type Policy interface {
	// Records are what the log keeps for the policy beside the table; nil: nothing. They are always the same.
	Records() leader.State
	// Elected begins a term.
	Elected()
	// Deposed ends it: what the log does not keep is forgotten.
	Deposed()
	// OwnerRequested is told that a node has links for a host that may be given away, and how many of them are to be fetched, as
	// far as that is known. It is told again until the host is somebody's; the policy says what is to happen meanwhile, by
	// Wait or Probe.
	OwnerRequested(from strategy.Node, host string, links int)
	// ProbeReport is told what came of a probe.
	Probed(p ProbeReport)
	// HolderFound is told that a node holds a host that is nobody's: it was a dead node's.
	HolderFound(from strategy.Node, host string)
	// MoveCompleted is told that a host has come that was promised, with its row as it was.
	MoveCompleted(host string, r hosttable.Row)
	// LoadReported is told how much a node has to do, about once a beat.
	LoadReported(load strategy.Load)
	// Offered is told that a node would hand over a host that it owns, and has stopped. It is told again until the policy
	// says Promise or Yours.
	Offered(o Offer)
	// Withdrawn is told that a host that was offered is not any more.
	Withdrawn(host string)
	// Advance does what is due. It is called after each step's events.
	Advance()
	// NextDue is when Advance should be called at the latest; zero: never.
	NextDue() time.Time
}

// A Probed says whether a node reaches a host.
type ProbeReport struct {
	From    strategy.Node
	Host    string
	OK      bool
	Took    time.Duration // to connect
	Network string        // the host's, as far as the node has found it out
	Holds   bool          // the node holds the host, as one that it does not reach yet
}

// An Offer is a host that a node would hand over.
type Offer struct {
	Host     string
	From, To strategy.Node
	Pending  int // URLs
	Row      hosttable.Row
}
