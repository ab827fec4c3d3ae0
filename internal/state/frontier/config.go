package frontier

import (
	"time"

	"kumo/internal/base/vfs"
)

// Config sets how hosts are treated.
type Config struct {
	Hosts     int           // hosts visited at once; 64
	PerHost   int           // connections to one host; 1
	Delay     time.Duration // from the end of an answer to the host's next request
	Session   int           // visits in a row that a host has before inactive ones, see doc.go; 16, 1: none
	AddrDelay time.Duration // between requests to one server address that several hosts share
	MaxDelay  time.Duration // the most of a Crawl-delay that is obeyed; 30s, negative: nothing
	RetryWait time.Duration // the first wait after a failure, doubled with each; 1s
	MaxWait   time.Duration // the longest wait after a failure or at a server's request; DefaultMaxWait
	SlowAfter time.Duration // a host whose answer took longer is a suspect; 5s
	// Each host's URLs are divided into so many slices, and each slice is a host here: see [item.Slices]. All slices
	// together keep to PerHost, as far as each has one connection at least, and to the delays on average: the delay of
	// a slice is multiplied by their number, since others may fetch the slices that are not here. 1
	Slices    int
	Ranker    Ranker                       // where pending URLs belong; nil: where they belonged when they were pushed
	Overrides func(host string) HostConfig // a host's own configuration, for all its slices; nil: none
	// nextBefore hosts go by their first URLs' ranks: see schedule.go; always so with a Ranker
	RankHosts bool
	Now       func() time.Time

	Dir    string // the frontier's own folder for what does not fit into memory, see Open; "": all stays in memory
	Disk   vfs.FS // where Dir is; vfs.OS
	Memory int64  // bytes to be used, about, with Dir; 256 MiB
}

// A HostConfig replaces the Config for a host. Zero values stand for the Config's.
type HostConfig struct {
	HasDelay bool
	Delay    time.Duration // a longer Crawl-delay still applies
	PerHost  int
}

const defaultMaxDelay = 30 * time.Second

// DefaultMaxWait bounds the wait for a server that asks for years, or fails all day.
const DefaultMaxWait = time.Hour

func (c Config) withDefaults() Config {
	setDefault(&c.Hosts, 64)
	setDefault(&c.PerHost, 1)
	setDefault(&c.Session, 16)
	setDefault(&c.MaxDelay, defaultMaxDelay)
	setDefault(&c.RetryWait, time.Second)
	setDefault(&c.MaxWait, DefaultMaxWait)
	setDefault(&c.SlowAfter, 5*time.Second)
	setDefault(&c.Memory, 256<<20)
	setDefault(&c.Disk, vfs.OS)
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Slices = max(c.Slices, 1)
	c.PerHost = max(c.PerHost/c.Slices, 1)
	c.Delay, c.MaxDelay = scaleDelay(c.Delay, c.Slices), scaleDelay(c.MaxDelay, c.Slices)
	return c
}

// scaleDelay multiplies a delay, up to the most that a record can have.
func scaleDelay(delay time.Duration, n int) time.Duration {
	const most = (hasOwnDelay - 1) * time.Millisecond
	if n > 1 && delay > most/time.Duration(n) {
		return max(delay, most)
	}
	return delay * time.Duration(n)
}

func setDefault[T comparable](p *T, value T) {
	var zero T
	if *p == zero {
		*p = value
	}
}
