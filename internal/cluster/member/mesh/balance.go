package mesh

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy"
)

// A Balance is a node's load. Level and Area are of the paper's policy, Backlog is of the default one.
type Balance struct {
	Level     int
	Area      int // blocks
	Backlog   time.Duration
	Waiting   int64   // URLs
	Rate      float64 // URLs fetched per second
	Arriving  float64 // URLs arriving per second
	Delegated int     // hosts of this node that others fetch
	Guests    int     // hosts of other nodes that this one fetches
}

// A BalanceConfig configures how load moves between nodes.
type BalanceConfig struct {
	Interval time.Duration // between two Loads, except with StrategyPaper; a second
	// With StrategyPaper: the blocks that this node works on; 0: computed from the rates of its Loads. Partial has a node
	// give as many blocks as fit, which the paper does not, and Off none. They are for measurements.
	Area    int
	Partial bool
	Off     bool
}

// LoadInterval returns the interval of a node's Loads.
func (cfg *BalanceConfig) LoadInterval() time.Duration {
	return cmp.Or(cfg.Interval, time.Second)
}

// A balancePolicy decides when load moves between nodes, and how much of it. The policy requests hosts from the engine
// by Spare, and has lending move them. It is the only part of a machine that depends on how load is measured.
type balancePolicy interface {
	// loaded processes the engine's load.
	loaded(e Load)
	// spared processes the answer to a Spare of the policy.
	spared(e Spared)
	// admit reports whether this node accepts a host that another node lends to it, with so many pending URLs; 0:
	// unknown. It uses up the room that was reserved for the host.
	admit(from strategy.Node, host string, urls int64) bool
	// handlers returns the handlers of the policy's own items.
	handlers() map[byte]itemHandler
	// balance returns the load, as of the last Load.
	balance() Balance
}
