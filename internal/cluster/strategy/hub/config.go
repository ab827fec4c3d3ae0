package hub

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy/central"
)

// Config is what a hub is made of.
type Config struct {
	central.Config

	Ask int // how many nodes are asked at once for a host that nobody owns: the nearest of them gets it; 1
	// how long those that are farther than the first are waited for: one that has fewer hosts may be chosen; 250ms
	Window time.Duration

	Rounds int           // how often all nodes try a host before its owner is left alone with it; 3
	Rest   time.Duration // after the first of them, doubled after each; 10s

	// how little a difference between two connections means: within it, who has fewer hosts is asked; 5ms, and 50ms with
	// LAN
	Alike time.Duration
	// between two times at which hosts move because a node has little to do, at least; 5s; negative: they never do
	Level time.Duration
	Stay  time.Duration // for so long a host that has moved for that reason does not again; 1h

	AskAll bool // as in the paper: all others are asked at once for a host that one does not reach
}

// LAN is for nodes that are in one place: what one reaches, all do, and a long timeout costs little.
func LAN() Config { return Config{Alike: 50 * time.Millisecond}.withDefaults() }

// WAN is for nodes that are far from each other and from parts of the web: a short timeout leaves hosts to those who
// are near them.
func WAN() Config {
	return Config{Config: central.Config{Retry: 2 * time.Second, Beat: 2 * time.Second, Silence: 7 * time.Second,
		Wait: 5 * time.Second, Timeout: 200 * time.Millisecond, Most: 5 * time.Second, Gather: 4 * time.Second,
		Await: time.Minute}, Ask: 4, Level: 15 * time.Second}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Config = c.Config.WithDefaults()
	c.Ask, c.Window = cmp.Or(c.Ask, 1), cmp.Or(c.Window, 250*time.Millisecond)
	c.Rounds, c.Rest = cmp.Or(c.Rounds, 3), cmp.Or(c.Rest, 10*time.Second)
	c.Alike, c.Level = cmp.Or(c.Alike, 5*time.Millisecond), cmp.Or(c.Level, 5*time.Second)
	c.Stay = cmp.Or(c.Stay, time.Hour)
	if c.FetchFirst { // the paper's nodes keep what they have met
		c.Gather, c.Level = -1, -1
	}
	c.Fixed = c.Level < 0
	return c
}
