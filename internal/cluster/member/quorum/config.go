package quorum

import (
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Config is what a Member is made of.
type Config struct {
	Self     strategy.Node
	Instance uint64            // tells processes with the same identity apart; never 0
	Joined   bool              // the identity was a member's before, as Enter has noted
	Arrived  []member.Transfer // that came whole since the last settled epoch that the holder knows of
	Forgot   []member.Transfer // Whole of all Forgets since then
	Partial  []member.Transfer // that an earlier process has taken chunks of, and that did not come whole
	Place    strategy.Placer   // nil: hosts are placed by a strategy that is no Placer, as Route says
	// Slot chooses the place of a node in the table of logical nodes; -1 where there is none. Nil: none has one.
	Slot func(members []strategy.Member, node strategy.Node) int
	// what all nodes of a cluster must agree on, in words: the strategy and its settings, the version of what is said
	Layout string
	Timing member.Timing
	// ParseTable; another may remember what it has read: a table is never changed
	Parse func(value []byte) (*Table, error)
	Seed  uint64 // for the spread of what many nodes would do at once
}
