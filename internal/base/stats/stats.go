// Package stats counts the events of a crawl.
//
// Counting is cheap enough for every page. Reports and views are made from a [Snapshot].
package stats

import (
	"maps"
	"strings"
	"sync"
	"time"
)

const (
	maxKeys = 10_000 // distinct types, failures or foreign hosts that are counted individually
	others  = "(others)"
)

// A Visit is a finished visit of a URL.
type Visit struct {
	Host      string
	Status    int    // 0 without a response
	Failure   string // why there was no response
	Type      string // media type
	Bytes     int64  // as sent over the wire
	Took      time.Duration
	Duplicate bool // same payload as an earlier response
	Recrawl   bool // not the first visit of the URL
	LinksCut  bool // the page has more links than were read

	NeedsScript bool // the page shows nothing without script, and was not rendered
	Rendered    bool // the page's scripts were run in a browser

	Usage string // usage preferences of the page, separated by spaces: "train_ai=n search=y"
}

// A Snapshot is a copy of the counters. It does not share its maps.
type Snapshot struct {
	Pages      int64 // URLs with a response
	Bytes      int64
	Failed     int64 // URLs without a response
	Retries    int64
	Duplicates int64
	Recrawls   int64 // revisited URLs; included in Pages
	Forsaken   int64 // URLs abandoned with their hosts in this run; they are pending for the next run
	Robots     int64 // robots.txt files fetched
	Links      int64 // links found, including repeated ones
	LinksCut   int64 // visits of pages with more links than were read
	Skipped    int64 // URLs in scope that were excluded

	NeedsScript int64 // visits of pages that show nothing without script, and were not rendered
	Rendered    int64 // visits of pages whose scripts were run

	Statuses map[int]int64
	Types    map[string]int64
	Failures map[string]int64
	Rules    map[string]int64 // exclusions by rule
	Usage    map[string]int64 // visits of pages by the statements about their use
	Off      map[string]int64 // links to hosts outside the crawl, by host
	Hosts    map[string]Host  // hosts with pages; see Partial
	// hosts were dropped: Hosts has the slower ones, counted since they were last added
	Partial bool
}

// A Counter counts events. It is safe for concurrent use.
type Counter struct {
	mu        sync.Mutex
	s         Snapshot
	extra     int64            // the part of s.Bytes that Sums returns
	abandoned map[string]int64 // URLs abandoned in this run, by failure
}

// New returns a Counter at zero.
func New() *Counter {
	return &Counter{abandoned: map[string]int64{}, s: Snapshot{
		Statuses: map[int]int64{}, Types: map[string]int64{}, Failures: map[string]int64{},
		Rules: map[string]int64{}, Usage: map[string]int64{}, Off: map[string]int64{}, Hosts: map[string]Host{},
	}}
}

// From returns a Counter that continues from a snapshot and the sums of the same time.
func From(s Snapshot, n Sums) *Counter {
	c := New()
	fill(c.s.Statuses, &s.Statuses)
	fill(c.s.Types, &s.Types)
	fill(c.s.Failures, &s.Failures)
	fill(c.s.Rules, &s.Rules)
	fill(c.s.Usage, &s.Usage)
	fill(c.s.Off, &s.Off)
	fill(c.s.Hosts, &s.Hosts)
	maps.DeleteFunc(s.Hosts, func(_ string, h Host) bool { return h.Pages == 0 }) // earlier versions stored such hosts
	c.s, c.extra = s, n.ExtraBytes
	c.dropFastest()
	return c
}

// fill replaces a nil map, which JSON had omitted.
func fill[K comparable, V any](empty map[K]V, m *map[K]V) {
	if *m == nil {
		*m = empty
	}
}

// Visited counts a finished visit.
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
	if v.NeedsScript {
		c.s.NeedsScript++
	}
	if v.Rendered {
		c.s.Rendered++
	}
	for word := range strings.FieldsSeq(v.Usage) {
		add(c.s.Usage, word, 1)
	}
	c.s.Bytes += v.Bytes
	c.countHost(&v)
}

// RobotsFetched counts a robots.txt or tdmrep.json and its size in bytes.
func (c *Counter) RobotsFetched(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Robots++
	c.s.Bytes += bytes
	c.extra += bytes
}

// ResourceFetched counts the size in bytes of a resource that a rendered page requested.
func (c *Counter) ResourceFetched(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Bytes += bytes
	c.extra += bytes
}

// Retried counts a visit that will be repeated, and its size in bytes.
func (c *Counter) Retried(bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Retries++
	c.s.Bytes += bytes
	c.extra += bytes
}

// Abandoned counts a URL that was abandoned with its host. It counts as failed in this run, but stays pending for the
// crawl.
func (c *Counter) Abandoned(v Visit) {
	c.Visited(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Forsaken++
	c.abandoned[v.Failure]++
}

// DurableSnapshot returns a snapshot without the abandoned URLs, which are counted when they are done.
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

// Sums are the counters that cannot be restored from a list of visits.
type Sums struct {
	Retries, Robots, Links int64
	ExtraBytes             int64 // of robots.txt files, resources of rendered pages, and repeated visits
}

// Sums returns the current sums.
func (c *Counter) Sums() Sums {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Sums{c.s.Retries, c.s.Robots, c.s.Links, c.extra}
}

// Restore sets the sums.
func (c *Counter) Restore(n Sums) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Bytes += n.ExtraBytes - c.extra
	c.s.Retries, c.s.Robots, c.s.Links, c.extra = n.Retries, n.Robots, n.Links, n.ExtraBytes
}

// Found counts n links.
func (c *Counter) Found(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Links += int64(n)
}

// Skipped counts a URL that was excluded by a rule.
func (c *Counter) Skipped(rule string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Skipped++
	add(c.s.Rules, rule, 1)
}

// OffHost counts n links to a host outside the crawl.
func (c *Counter) OffHost(host string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(c.s.Off, host, n)
}

// add adds n to a key. The number of keys is bounded, because they come from the network.
func add(m map[string]int64, key string, n int64) {
	if _, known := m[key]; !known && len(m) >= maxKeys {
		key = others
	}
	m[key] += n
}

// Pages returns the number of responses so far.
func (c *Counter) Pages() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Pages
}

// NewPages returns the number of responses so far without recrawls.
func (c *Counter) NewPages() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.Pages - c.s.Recrawls
}

// Totals returns a snapshot without maps.
func (c *Counter) Totals() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Statuses, s.Types, s.Failures, s.Rules, s.Usage, s.Off, s.Hosts = nil, nil, nil, nil, nil, nil, nil
	return s
}

// Answers returns the number of responses by status, and of visits without a response by failure.
func (c *Counter) Answers() (statuses map[int]int64, failures map[string]int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.s.Statuses), maps.Clone(c.s.Failures)
}

// Snapshot returns a copy of the counters.
func (c *Counter) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Statuses, s.Types, s.Failures = maps.Clone(s.Statuses), maps.Clone(s.Types), maps.Clone(s.Failures)
	s.Rules, s.Usage = maps.Clone(s.Rules), maps.Clone(s.Usage)
	s.Off, s.Hosts = maps.Clone(s.Off), maps.Clone(s.Hosts)
	return s
}
