package crawl

import (
	"sync"
	"sync/atomic"

	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
)

// journalCounts are counters that each commit writes to the journal.
type journalCounts struct {
	stats    *stats.Counter
	offHosts offHosts
	durable  durablePages
}

// appendCounts appends the counts since the last commit that follow from no other entry.
func (c *journalCounts) appendCounts(batch []byte) []byte {
	enc := entry.Encoder{Writer: batch}
	c.offHosts.journal(&enc, c.stats)
	c.durable.beginCommit(c.stats.Pages())
	return enc.Writer
}

const maxOffHosts = 100_000 // hosts whose counts one commit has

// offHosts counts links to out-of-scope hosts until the next commit.
type offHosts struct {
	mu    sync.Mutex // guards the fields below
	links map[string]int64
	sums  stats.Sums // sums in the journal
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

// journal writes the counts since the last commit that follow from no other entry.
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

// durablePages counts the pages that are durable with their records.
type durablePages struct {
	now  atomic.Int64
	next atomic.Int64 // value of now once the commit under way is done
}

// beginCommit records that a commit with the given number of pages begins: the one before is done.
func (d *durablePages) beginCommit(pages int64) { d.now.Store(d.next.Swap(pages)) }
