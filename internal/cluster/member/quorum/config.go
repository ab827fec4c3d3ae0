package quorum

import (
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// Config configures a Member.
type Config struct {
	Self      strategy.Node
	Instance  uint64            // differs for processes with the same identity; never 0
	Joined    bool              // an earlier process of this identity was a member, as RecordJoin has recorded
	Received  []member.Transfer // complete transfers since the last finalized epoch that the holder knows
	Forgotten []member.Transfer // the Completed lists of all Forgets since then
	Partial   []member.Transfer // incomplete transfers whose first chunks an earlier process has received
	Place     strategy.Placer   // nil: the strategy is no Placer, and Route reports the owners of hosts
	// Slot returns a node's slot in the table of logical nodes; -1 if no slot is free. Nil: nodes have no slots.
	Slot func(members []strategy.Member, node strategy.Node) int
	// Layout describes in words what all nodes of a cluster must agree on: the strategy, its settings and the versions
	// of messages.
	Layout string
	Timing member.Timing
	// Parse defaults to ParseTable. It may return a table that it has parsed before, as tables are never changed.
	Parse func(value []byte) (*Table, error)
	Seed  uint64 // spreads over time the writes that several nodes would make at once
}
