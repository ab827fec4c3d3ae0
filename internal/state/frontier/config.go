package frontier

import (
	"time"

	"kumo/internal/base/vfs"
)

// Config configures the frontier. Comments end with the default.
type Config struct {
	Hosts     int           // hosts visited at once; 64
	PerHost   int           // connections to one host; 1
	Delay     time.Duration // from the end of a response to the host's next request
	Session   int           // visits in a row before inactive hosts have a turn, see doc.go; 1: no sessions; 16
	AddrDelay time.Duration // between requests to one server address that several hosts share
	MaxDelay  time.Duration // upper limit of an obeyed Crawl-delay; negative: ignore it; 30s
	RetryWait time.Duration // wait after the first failure, doubled with each; 1s
	MaxWait   time.Duration // longest wait after a failure or at a server's request; DefaultMaxWait
	SlowAfter time.Duration // a host that takes longer to respond is a suspect; 5s
	// Slices is the number of slices into which each host's URLs are divided. Each slice is a host here: see
	// [item.Slices]. All slices of a host share PerHost, but each has at least one connection. They keep to the delays
	// on average: the delay of a slice is multiplied by their number, as other nodes may fetch the other slices. 1
	Slices int
	// supplies current ranks; nil: items keep the rank that they were pushed with
	Ranker    Ranker
	Overrides func(host string) HostConfig // a host's own configuration, for all its slices; nil: none
	// RankHosts orders due hosts by the ranks of their first URLs: see schedule.go. It is implied by a Ranker.
	RankHosts bool
	Now       func() time.Time

	Dir    string // the frontier's own folder for data that exceeds Memory, see Open; "": all stays in memory
	Disk   vfs.FS // file system of Dir; vfs.OS
	Memory int64  // approximate limit in bytes with Dir; 256 MiB
}

// A HostConfig overrides the Config for a host. Zero values mean the Config's.
type HostConfig struct {
	HasDelay bool
	Delay    time.Duration // a longer Crawl-delay still applies
	PerHost  int
}

const defaultMaxDelay = 30 * time.Second

// DefaultMaxWait bounds the wait for a server that requests years, or fails all day.
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

// scaleDelay multiplies a delay, up to the maximum of a record.
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
