// Package stats counts the events of a crawl.
//
// Counting is cheap enough for every page. Reports and views are made from a [Snapshot].
package stats

import (
	"maps"
	"sync"
	"time"
)

const (
	maxKeys = 10_000 // distinct types, failures or foreign hosts that are counted apart
	others  = "(others)"
)

// A Visit is one finished URL.
type Visit struct {
	Host      string
	Status    int    // 0 when there was no answer
	Failure   string // why, then
	Type      string // media type
	Bytes     int64  // over the wire
	Took      time.Duration
	Duplicate bool // same payload as an earlier one
	Recrawl   bool // not the URL's first
	LinksCut  bool // it has more links than were read
}

// A Snapshot is the counters at one time. Its maps are its own.
type Snapshot struct {
	Pages      int64 // URLs that were answered
	Bytes      int64
	Failed     int64 // URLs that were not
	Retries    int64
	Duplicates int64
	Recrawls   int64 // of Pages, those of URLs that were visited before
	Forsaken   int64 // URLs of this run whose host was given up: they wait for the next
	Robots     int64 // robots.txt fetched
	Links      int64 // links found, repeats included
	LinksCut   int64 // visits of pages with more links than were read
	Skipped    int64 // URLs within reach that were left out
	Statuses   map[int]int64
	Types      map[string]int64
	Failures   map[string]int64
	Rules      map[string]int64 // skips by rule
	Off        map[string]int64 // links to hosts that are not the crawl's, by host
	Hosts      map[string]Host  // that gave pages, see Partial
	// there were more: Hosts has those that were slow to answer, as counted since they came in last
	Partial bool
}

// A Counter counts. Its methods may be called by many goroutines at once.
type Counter struct {
	mu        sync.Mutex
	s         Snapshot
	extra     int64            // of s.Bytes, those that Sums tells of
	abandoned map[string]int64 // forsaken URLs, by failure
}

// New returns a counter at zero.
func New() *Counter {
	return &Counter{abandoned: map[string]int64{}, s: Snapshot{
		Statuses: map[int]int64{}, Types: map[string]int64{}, Failures: map[string]int64{},
		Rules: map[string]int64{}, Off: map[string]int64{}, Hosts: map[string]Host{},
	}}
}

// From returns a counter that goes on from a snapshot and the sums of the same moment.
func From(s Snapshot, n Sums) *Counter {
	c := New()
	fill(c.s.Statuses, &s.Statuses)
	fill(c.s.Types, &s.Types)
	fill(c.s.Failures, &s.Failures)
	fill(c.s.Rules, &s.Rules)
	fill(c.s.Off, &s.Off)
	fill(c.s.Hosts, &s.Hosts)
	maps.DeleteFunc(s.Hosts, func(_ string, h Host) bool { return h.Pages == 0 }) // which kumo once kept
	c.s, c.extra = s, n.ExtraBytes
	c.dropFastest()
	return c
}

// fill makes a map that JSON has left out.
func fill[K comparable, V any](empty map[K]V, m *map[K]V) {
	if *m == nil {
		*m = empty
	}
}

// Visited counts a finished URL.
func (c *Counter) Visited(v Visit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.Status == 0 {
		c.s.Failed++
		add(c.s.Failures, v.Failure, 1)
	} else {
		c.s.Pages++
		if v.Recrawl {
			c.s.Recrawls++
		}
		c.s.Statuses[v.Status]++
		add(c.s.Types, v.Type, 1)
	}
	if v.Duplicate {
		c.s.Duplicates++
	}
	if v.LinksCut {
		c.s.LinksCut++
	}
	c.s.Bytes += v.Bytes
	c.countHost(&v)
}

// RobotsFetched counts a robots.txt.
func (c *Counter) RobotsFetched(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Robots++
	c.s.Bytes += bytes
	c.extra += bytes
}

// Retried counts a visit that will be made again.
func (c *Counter) Retried(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Retries++
	c.s.Bytes += bytes
	c.extra += bytes
}

// Abandoned counts a URL of this run whose host was given up: it has failed, but for the crawl it still waits.
func (c *Counter) Abandoned(v Visit) {
	c.Visited(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Forsaken++
	c.abandoned[v.Failure]++
}

// DurableSnapshot is a snapshot without what was forsaken: that is counted when it is done.
func (c *Counter) DurableSnapshot() Snapshot {
	s := c.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	for failure, n := range c.abandoned {
		s.Forsaken -= n
		s.Failed -= n
		add(s.Failures, failure, -n)
	}
	return s
}

// Sums are counters that no list of visits gives back.
type Sums struct {
	Retries, Robots, Links int64
	ExtraBytes             int64 // of robots.txt and of visits that were made again
}

// Sums returns them.
func (c *Counter) Sums() Sums {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Sums{c.s.Retries, c.s.Robots, c.s.Links, c.extra}
}

// Restore sets them.
func (c *Counter) Restore(n Sums) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Bytes += n.ExtraBytes - c.extra
	c.s.Retries, c.s.Robots, c.s.Links, c.extra = n.Retries, n.Robots, n.Links, n.ExtraBytes
}

// Found counts links.
func (c *Counter) Found(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Links += int64(n)
}

// Skipped counts a URL left out by a rule.
func (c *Counter) Skipped(rule string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Skipped++
	add(c.s.Rules, rule, 1)
}

// OffHost counts links to a host that is not the crawl's.
func (c *Counter) OffHost(host string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(c.s.Off, host, n)
}

// add keeps the number of keys bounded: they come from the network.
func add(m map[string]int64, key string, n int64) {
	if _, known := m[key]; !known && len(m) >= maxKeys {
		key = others
	}
	m[key] += n
}

// Pages is the number of URLs answered so far.
func (c *Counter) Pages() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Pages
}

// NewPages is the number of URLs answered so far, each once.
func (c *Counter) NewPages() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Pages - c.s.Recrawls
}

// Totals is a snapshot without its maps.
func (c *Counter) Totals() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Statuses, s.Types, s.Failures, s.Rules, s.Off, s.Hosts = nil, nil, nil, nil, nil, nil
	return s
}

// Answers copies how many URLs were answered with each status, and how many were not for each kind of failure.
func (c *Counter) Answers() (statuses map[int]int64, failures map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.s.Statuses), maps.Clone(c.s.Failures)
}

// Snapshot copies the counters.
func (c *Counter) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Statuses, s.Types, s.Failures = maps.Clone(s.Statuses), maps.Clone(s.Types), maps.Clone(s.Failures)
	s.Rules, s.Off, s.Hosts = maps.Clone(s.Rules), maps.Clone(s.Off), maps.Clone(s.Hosts)
	return s
}
