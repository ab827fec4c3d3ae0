package hub

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy/central"
)

// Config is what a hub is made of.
type Config struct {
	central.Config

	ParallelProbes int // how many nodes are asked at once for a host that nobody owns: the nearest of them gets it; 1
	// how long those that are farther than the first are waited for: one that has fewer hosts may be chosen; 250ms
	Window time.Duration

	Rounds     int           // how often all nodes try a host before its owner is left alone with it; 3
	RetryDelay time.Duration // after the first of them, doubled after each; 10s

	// how little a difference between two connections means: within it, who has fewer hosts is asked; 5ms, and 50ms with
	// LAN
	SimilarLatency time.Duration
	// between two times at which hosts move because a node has little to do, at least; 5s; negative: they never do
	BalanceInterval time.Duration
	MinStay         time.Duration // for so long a host that has moved for that reason does not again; 1h

	ProbeAll bool // as in the paper: all others are asked at once for a host that one does not reach
}

// LAN is for nodes that are in one place: what one reaches, all do, and a long timeout costs little.
func LAN() Config { return Config{SimilarLatency: 50 * time.Millisecond}.withDefaults() }

// WAN is for nodes that are far from each other and from parts of the web: a short timeout leaves hosts to those who
// are near them.
func WAN() Config {
	return Config{Config: central.Config{
		Retry:        2 * time.Second,
		Beat:         2 * time.Second,
		Silence:      7 * time.Second,
		DecisionWait: 5 * time.Second,
		Timeout:      200 * time.Millisecond,
		MaxTimeout:   5 * time.Second,
		GatherTime:   4 * time.Second,
		JoinTimeout:  time.Minute,
	}, ParallelProbes: 4, BalanceInterval: 15 * time.Second}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
	c.ParallelProbes, c.Window = cmp.Or(c.ParallelProbes, 1), cmp.Or(c.Window, 250*time.Millisecond)
	c.Rounds, c.RetryDelay = cmp.Or(c.Rounds, 3), cmp.Or(c.RetryDelay, 10*time.Second)
	c.SimilarLatency, c.BalanceInterval = cmp.Or(
		c.SimilarLatency,
		5*time.Millisecond,
	), cmp.Or(
		c.BalanceInterval,
		5*time.Second,
	)
	c.MinStay = cmp.Or(c.MinStay, time.Hour)
	if c.FetchFirst { // the paper's nodes keep what they have met
		c.GatherTime, c.BalanceInterval = -1, -1
	}
	c.Fixed = c.BalanceInterval < 0
	return c
}
