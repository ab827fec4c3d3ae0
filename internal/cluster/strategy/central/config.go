package central

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// Config is what a Strategy is made of, whatever its Policy.
type Config struct {
	Self strategy.Node
	Key  hosttable.Key // keys the table's hash; the same on all nodes of a crawl

	Retry        time.Duration // until a question without an answer is asked again, doubled up to eight times; 500ms
	Beat         time.Duration // between two words of the leader to those who would take its place; 1s
	Silence      time.Duration // after so long without one, one of them does; 4s
	DecisionWait time.Duration // until a node asks again about a host that is being decided; 2s

	Timeout    time.Duration // of a probe, to begin with; 2s
	MinTimeout time.Duration // what a heavily loaded node comes down to; a quarter of Timeout
	// what a lightly loaded one goes up to, and what hosts that nobody has reached are given in the end; four times
	// Timeout
	MaxTimeout time.Duration
	Probes     int // under way at once; 64

	// for so long members must have been the same before the first hosts of a crawl are given away; 1500ms; negative: at
	// once
	GatherTime  time.Duration
	JoinTimeout time.Duration // for so long, at most, they wait for nodes that are known to come; 30s

	OfferCooldown time.Duration // a host that was offered in vain is not offered again for so long, or up to twice that; 5m

	Fixed      bool // no host moves for load: nodes tell none, and give none away
	FetchFirst bool // a node begins to fetch from a host that it wants before it is granted
}

// WithDefaults is the Config with what is 0 as the fields say.
func (c Config) WithDefaults() Config {
	c.Retry, c.Beat, c.Silence = cmp.Or(c.Retry, 500*time.Millisecond), cmp.Or(c.Beat, time.Second),
		cmp.Or(c.Silence, 4*time.Second)
	c.DecisionWait, c.Timeout = cmp.Or(c.DecisionWait, 2*time.Second), cmp.Or(c.Timeout, 2*time.Second)
	c.MinTimeout, c.MaxTimeout = cmp.Or(c.MinTimeout, c.Timeout/4), cmp.Or(c.MaxTimeout, 4*c.Timeout)
	c.Probes, c.OfferCooldown = cmp.Or(c.Probes, 64), cmp.Or(c.OfferCooldown, 5*time.Minute)
	c.GatherTime, c.JoinTimeout = cmp.Or(c.GatherTime, 1500*time.Millisecond), cmp.Or(c.JoinTimeout, 30*time.Second)
	return c
}
