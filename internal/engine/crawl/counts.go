package crawl

import (
	"sync"
	"sync/atomic"

	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
)

// journalCounts are counters that the journal gets with each commit.
type journalCounts struct {
	stats    *stats.Counter
	offHosts offHosts
	durable  durablePages
}

// appendCounts journals what has been counted since the last commit and follows from no other entry.
func (c *journalCounts) appendCounts(batch []byte) []byte {
	enc := entry.Encoder{Writer: batch}
	c.offHosts.journal(&enc, c.stats)
	c.durable.beginCommit(c.stats.Pages())
	return enc.Writer
}

const maxOffHosts = 100_000 // whose counts a commit has

// offHosts counts links to hosts that are not the crawl's, and what else the journal is told of with the next commit.
type offHosts struct {
	mu    sync.Mutex // guards what follows
	links map[string]int64
	sums  stats.Sums // as the journal has them
}

// add counts a link to each host.
func (o *offHosts) add(hosts []string, to *stats.Counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, host := range hosts {
		to.OffHost(host, 1)
		if _, known := o.links[host]; known || len(o.links) < maxOffHosts {
			o.links[host]++
		}
	}
}

// journal writes what has been counted since the last commit and follows from no other entry.
func (o *offHosts) journal(enc *entry.Encoder, from *stats.Counter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if sums := from.Sums(); sums != o.sums {
		enc.Counters(sums)
		o.sums = sums
	}
	for host, n := range o.links {
		enc.OffHost(host, n)
	}
	clear(o.links)
}

// durablePages is how many pages are durable, with their records.
type durablePages struct {
	now  atomic.Int64
	next atomic.Int64 // when the commit that is under way is done
}

// beginCommit says that a commit begins with so many pages: the one before is done.
func (d *durablePages) beginCommit(pages int64) { d.now.Store(d.next.Swap(pages)) }
