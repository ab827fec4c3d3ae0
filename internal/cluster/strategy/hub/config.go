package hub

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy/central"
)

// Config configures the strategy. Zero values mean the defaults given.
type Config struct {
	central.Config

	ParallelProbes int // nodes that probe a host without an owner at the same time; the nearest gets it; 1
	// wait for further claims after the first one, since a more distant node with fewer hosts may be chosen; 250ms
	Window time.Duration

	Rounds     int           // rounds of probes by all nodes until the owner must crawl an unreached host; 3
	RetryDelay time.Duration // between the first two rounds; doubles after each; 10s

	// latencies that differ by less count as equal, so that the node with fewer hosts is preferred; 5ms, with LAN 50ms
	SimilarLatency time.Duration
	// minimum time between two moves of hosts to nodes with little work; 5s; negative: no moves
	BalanceInterval time.Duration
	MinStay         time.Duration // minimum time between two such moves of the same host; 1h

	ProbeAll bool // as in the paper: if one node fails, all others probe the host at once
}

// LAN returns the configuration for nodes in one place: they all reach the same hosts, and a long timeout costs little.
func LAN() Config { return Config{SimilarLatency: 50 * time.Millisecond}.withDefaults() }

// WAN returns the configuration for nodes that are far from each other and from parts of the web: with a short timeout,
// hosts go to nodes near them.
func WAN() Config {
	return Config{Config: central.Config{
		Retry:        2 * time.Second,
		Beat:         2 * time.Second,
		Silence:      7 * time.Second,
		DecisionWait: 5 * time.Second,
		Timeout:      200 * time.Millisecond,
		RetryTimeout: 5 * time.Second,
		GatherTime:   4 * time.Second,
		JoinTimeout:  time.Minute,
	}, ParallelProbes: 4, BalanceInterval: 15 * time.Second}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
	c.ParallelProbes, c.Window = cmp.Or(c.ParallelProbes, 1), cmp.Or(c.Window, 250*time.Millisecond)
	c.Rounds, c.RetryDelay = cmp.Or(c.Rounds, 3), cmp.Or(c.RetryDelay, 10*time.Second)
	c.SimilarLatency = cmp.Or(c.SimilarLatency, 5*time.Millisecond)
	c.BalanceInterval, c.MinStay = cmp.Or(c.BalanceInterval, 5*time.Second), cmp.Or(c.MinStay, time.Hour)
	if c.FetchFirst { // the paper's nodes keep the hosts that they found
		c.GatherTime, c.BalanceInterval = -1, -1
	}
	c.Fixed = c.BalanceInterval < 0
	return c
}
