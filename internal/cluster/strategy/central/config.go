package central

import (
	"cmp"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// Config configures a Strategy, whatever its Policy. Zero values mean the defaults given.
type Config struct {
	Self strategy.Node
	Key  hosttable.Key // key of the table's hash; the same on all nodes of a crawl

	Retry        time.Duration // until an unanswered request is sent again; doubles up to 8-fold; 500ms
	Beat         time.Duration // between heartbeats of the leader to the other candidates; 1s
	Silence      time.Duration // without a heartbeat, until another candidate takes over; 4s
	DecisionWait time.Duration // until a node repeats a request that is still being decided; 2s

	Timeout    time.Duration // initial timeout of a probe; 2s
	MinTimeout time.Duration // lower bound of the timeout under heavy load; Timeout/4
	MaxTimeout time.Duration // upper bound of the timeout under light load; 2*Timeout
	// upper bound of the timeout of repeated probes for hosts that no node has reached; 4*Timeout
	RetryTimeout time.Duration
	Probes       int // concurrent probes; 64

	// how long the members must stay unchanged before a crawl's first hosts are assigned; 1500ms; negative: no wait
	GatherTime  time.Duration
	JoinTimeout time.Duration // limit of the wait for nodes that are known to be joining; 30s

	// between load reports of a node whose queue lasts for less than Beat; 0: as of others, once per Beat
	ShortBeat time.Duration

	OfferCooldown time.Duration // until a declined host is offered again, at most twice that; 5m

	Fixed      bool // no load balancing: nodes neither report load nor give hosts away
	FetchFirst bool // a node fetches from a host before it is granted
}

// WithDefaults returns c with the defaults filled in.
func (c Config) WithDefaults() Config {
	c.Retry, c.Beat, c.Silence = cmp.Or(c.Retry, 500*time.Millisecond), cmp.Or(c.Beat, time.Second),
		cmp.Or(c.Silence, 4*time.Second)
	c.DecisionWait, c.Timeout = cmp.Or(c.DecisionWait, 2*time.Second), cmp.Or(c.Timeout, 2*time.Second)
	c.MinTimeout, c.MaxTimeout = cmp.Or(c.MinTimeout, c.Timeout/4), cmp.Or(c.MaxTimeout, 2*c.Timeout)
	c.RetryTimeout = cmp.Or(c.RetryTimeout, 4*c.Timeout)
	c.Probes, c.OfferCooldown = cmp.Or(c.Probes, 64), cmp.Or(c.OfferCooldown, 5*time.Minute)
	c.GatherTime, c.JoinTimeout = cmp.Or(c.GatherTime, 1500*time.Millisecond), cmp.Or(c.JoinTimeout, 30*time.Second)
	return c
}
