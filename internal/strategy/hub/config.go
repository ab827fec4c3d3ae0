package hub

import (
	"cmp"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/hub/hosttable"
)

// Config is what a Hub is made of.
type Config struct {
	Self strategy.Node
	Key  hosttable.Key // keys the table's hash; the same on all nodes of a crawl

	Retry   time.Duration // until a question without an answer is asked again, doubled up to eight times; 500ms
	Beat    time.Duration // between two words of the control unit to those who would take its place; 1s
	Silence time.Duration // after so long without one, one of them does; 4s
	Wait    time.Duration // until a node asks again about a host that is being decided; 2s

	Timeout time.Duration // of a probe, to begin with; 2s
	Least   time.Duration // what a heavily loaded node comes down to; a quarter of Timeout
	// what a lightly loaded one goes up to, and what hosts that nobody has reached are given in the end; four times
	// Timeout
	Most   time.Duration
	Probes int // under way at once; 64

	Ask int // how many nodes are asked at once for a host that nobody owns: the nearest of them gets it; 1
	// how long those that are farther than the first are waited for: one that has fewer hosts may be chosen; 250ms
	Window time.Duration

	Rounds int           // how often all nodes try a host before its owner is left alone with it; 3
	Rest   time.Duration // after the first of them, doubled after each; 10s

	// how little a difference between two connections means: within it, who has fewer hosts is asked; 5ms, and 50ms with
	// LAN
	Alike time.Duration
	// for so long members must have been the same before the first hosts of a crawl are given away; 1500ms; negative: at
	// once
	Gather time.Duration
	Await  time.Duration // for so long, at most, they wait for nodes that are known to come; 30s
	// between two times at which hosts move because a node has little to do, at least; 5s; negative: they never do
	Level time.Duration
	Stay  time.Duration // for so long a host that has moved for that reason does not again; 1h

	FetchFirst bool // as in the paper: a node begins to fetch from a host before it is granted
	AskAll     bool // as in the paper: all others are asked at once for a host that one does not reach
}

// LAN is for nodes that are in one place: what one reaches, all do, and a long timeout costs little.
func LAN() Config { return Config{Alike: 50 * time.Millisecond}.withDefaults() }

// WAN is for nodes that are far from each other and from parts of the web: a short timeout leaves hosts to those who
// are near them.
func WAN() Config {
	return Config{Retry: 2 * time.Second, Beat: 2 * time.Second, Silence: 7 * time.Second, Wait: 5 * time.Second,
		Timeout: 200 * time.Millisecond, Most: 5 * time.Second, Ask: 4, Gather: 4 * time.Second, Await: time.Minute,
		Level: 15 * time.Second}.withDefaults()
}

func (c Config) withDefaults() Config {
	c.Retry, c.Beat, c.Silence = cmp.Or(c.Retry, 500*time.Millisecond), cmp.Or(c.Beat, time.Second),
		cmp.Or(c.Silence, 4*time.Second)
	c.Wait, c.Timeout = cmp.Or(c.Wait, 2*time.Second), cmp.Or(c.Timeout, 2*time.Second)
	c.Least, c.Most = cmp.Or(c.Least, c.Timeout/4), cmp.Or(c.Most, 4*c.Timeout)
	c.Ask, c.Window = cmp.Or(c.Ask, 1), cmp.Or(c.Window, 250*time.Millisecond)
	c.Probes, c.Rounds, c.Rest = cmp.Or(c.Probes, 64), cmp.Or(c.Rounds, 3), cmp.Or(c.Rest, 10*time.Second)
	c.Alike, c.Gather, c.Level = cmp.Or(c.Alike, 5*time.Millisecond), cmp.Or(c.Gather, 1500*time.Millisecond),
		cmp.Or(c.Level, 5*time.Second)
	c.Stay, c.Await = cmp.Or(c.Stay, time.Hour), cmp.Or(c.Await, 30*time.Second)
	if c.FetchFirst { // the paper's nodes keep what they have met
		c.Gather, c.Level = -1, -1
	}
	return c
}
