package synthweb

import (
	"cmp"
	"time"
)

// Config describes a web. The zero value of each field selects the default. Equal values give identical webs, byte for
// byte.
type Config struct {
	Seed   uint64
	Hosts  int     // hosts that answer (1), in addition to hosts with dead traits
	Pages  int     // ordinary pages of all hosts (100 per host)
	Spread float64 // sigma of the lognormal number of pages per host (0.5); negative: all equal

	ByAddress bool // hosts have no names; each has its own loopback address, which URLs contain
	TLS       bool // URLs are https
	// hosts have registered domains of their own, such as h0000.test, instead of h0000.synth.test; not with TLS
	OwnDomains bool

	MedianSize int     // median size of an HTML page in bytes (27 KB); the maximum is 32 times as much
	SizeSpread float64 // sigma of the lognormal page size (1)
	MeanLinks  int     // mean number of links on an ordinary page (40)
	LargeSize  int     // size of a large page in bytes (4 MB)
	Odd        int     // pages per 1,000 with unusual markup: unquoted, entities, base, dot segments, raw non-ASCII

	Languages []string // languages of the hosts in turn, as returned by Languages; none: made-up words
	Day       int      // from 1: pages change, appear and disappear daily, and have validators; 0: no days

	// share of the ordinary pages that need script, from 0 to 1; not with Languages and Day
	ScriptShare float64

	Kinds  map[Kind]int  // pages per 1,000 that have a companion of this kind
	Traits map[Trait]int // hosts per 1,000 that have this trait; at least one host if not 0

	Latency    time.Duration // mean time from request to answer (0); each host's own is 0.5 to 1.5 times as long
	Slowest    time.Duration // if not 0, each host's latency is drawn evenly between Latency and this
	Slow       time.Duration // mean time on a host with trait Slow (1s)
	CrawlDelay time.Duration // Crawl-delay in the robots.txt of a host with trait Delay (1s)
	BurstEvery int           // answers between two bursts of 429 on a host with trait Throttle (50)
	RetryAfter time.Duration // duration of a burst, rounded down to seconds (1s)
}

// Clean returns a well-behaved web: ordinary pages, robots.txt with forbidden paths, gzip, redirects, missing pages.
func Clean(seed uint64, hosts, pages int) Config {
	return Config{
		Seed: seed, Hosts: hosts, Pages: pages,
		Kinds:  map[Kind]int{Hop: 40, Out: 10, Gone: 15, Private: 20, Image: 300, Style: 1000},
		Traits: map[Trait]int{Gzip: 850},
	}
}

// Messy returns a web with all problems that a crawler meets. A crawl of some thousand pages ends within minutes. A
// crawl without a rule against calendars never ends.
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

// MedianSize returns the Config.MedianSize for a mean page size, with the default SizeSpread.
func MedianSize(mean int) int {
	const meanOfMedian = 1.646 // for a lognormal with sigma 1, cut at 32 medians
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
