package synthweb

import (
	"cmp"
	"time"
)

// Config describes a web. The zero value of each field gives its default; equal values give equal webs, byte for byte.
type Config struct {
	Seed   uint64
	Hosts  int     // hosts that answer (1); those of the dead traits come on top
	Pages  int     // ordinary pages over all hosts (100 a host)
	Spread float64 // sigma of the lognormal number of pages a host (0.5); negative: all hosts alike

	ByAddress bool // hosts have no names: each has a loopback address of its own, and URLs have that
	TLS       bool // URLs are https ones
	// hosts have registered domains of their own, h0000.test, in place of one for all, h0000.synth.test; not with TLS
	OwnDomains bool

	MedianSize int     // bytes of an HTML page (27 KB), at most 32 times as many
	SizeSpread float64 // sigma of the lognormal sizes of pages (1)
	MeanLinks  int     // links on an ordinary page (40)
	LargeSize  int     // bytes of a large page (4 MB)
	Odd        int     // pages in a thousand whose markup is odd: unquoted, entities, base, dot segments, raw non-ASCII

	Languages []string // those that hosts are in, by turns, as Languages has them; none: made-up words
	Day       int      // from 1: pages change, come and go from day to day, and say their version; 0: there are no days

	Kinds  map[Kind]int  // pages in a thousand that have a companion of this kind
	Traits map[Trait]int // hosts in a thousand that have this trait; at least one host where it is not 0

	Latency    time.Duration // mean time from request to answer; each host has its own between half and one and a half (0)
	Slowest    time.Duration // where not 0, each host's latency is between Latency and this, drawn evenly
	Slow       time.Duration // the same on a host of trait Slow (1s)
	CrawlDelay time.Duration // what robots.txt asks for on a host of trait Delay (1s)
	BurstEvery int           // answers between two bursts of 429 on a host of trait Throttle (50)
	RetryAfter time.Duration // how long a burst lasts, cut to whole seconds (1s)
}

// Clean is a web as well-behaved as they come: ordinary pages, robots.txt with forbidden paths, gzip, redirects,
// missing pages.
func Clean(seed uint64, hosts, pages int) Config {
	return Config{
		Seed: seed, Hosts: hosts, Pages: pages,
		Kinds:  map[Kind]int{Hop: 40, Out: 10, Gone: 15, Private: 20, Image: 300, Style: 1000},
		Traits: map[Trait]int{Gzip: 850},
	}
}

// Messy is a web with everything that a crawler meets in a bad week, at a pace that lets a crawl of some thousand pages
// end within minutes. A crawl without a rule against calendars never ends.
func Messy(seed uint64, hosts, pages int) Config {
	cfg := Clean(seed, hosts, pages)
	cfg.Odd, cfg.Slow, cfg.CrawlDelay = 300, 200*time.Millisecond, 200*time.Millisecond
	for k := range numKinds {
		if kinds[k].dir != "" && cfg.Kinds[k] == 0 {
			cfg.Kinds[k] = 20
		}
	}
	cfg.Kinds[Copy], cfg.Kinds[Large], cfg.Kinds[Cut] = 30, 2, 5
	for t := range numTraits {
		cfg.Traits[t] = 30
	}
	cfg.Traits[Gzip], cfg.Traits[Chunked], cfg.Traits[Legacy] = 700, 300, 250
	return cfg
}

// MedianSize is the Config.MedianSize of pages that are of a mean size, with the usual SizeSpread.
func MedianSize(mean int) int {
	const meanOfMedian = 1.646 // of a lognormal with sigma 1, cut at 32 medians
	return max(1, int(float64(mean)/meanOfMedian))
}

func (c Config) withDefaults() Config {
	c.Hosts = cmp.Or(c.Hosts, 1)
	c.Pages = max(cmp.Or(c.Pages, 100*c.Hosts), c.Hosts)
	c.Spread = cmp.Or(c.Spread, 0.5)
	c.MedianSize = cmp.Or(c.MedianSize, 27<<10)
	c.SizeSpread = cmp.Or(c.SizeSpread, 1)
	c.MeanLinks = cmp.Or(c.MeanLinks, 40)
	c.LargeSize = cmp.Or(c.LargeSize, 4<<20)
	c.Slow = cmp.Or(c.Slow, time.Second)
	c.CrawlDelay = cmp.Or(c.CrawlDelay, time.Second)
	c.BurstEvery = cmp.Or(c.BurstEvery, 50)
	c.RetryAfter = cmp.Or(c.RetryAfter, time.Second)
	return c
}
