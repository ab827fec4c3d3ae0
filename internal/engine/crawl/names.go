package crawl

import (
	"strings"
	"sync"

	"kumo/internal/base/bounded"
	"kumo/internal/base/stats"
	"kumo/internal/state/entry"
)

const (
	maxNames    = 50_000
	maxOffHosts = 100_000 // other hosts that a commit tells of
)

// names are strings that many items share: hosts, and paths of discovery.
type names struct {
	mu   sync.Mutex // guards kept
	kept *bounded.Recent[string, string]
}

func newNames() *names { return &names{kept: bounded.NewRecent[string, string](maxNames)} }

// intern returns one copy of a string that many items share.
func (n *names) intern(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if kept, ok := n.kept.Get(s); ok {
		return kept
	}
	s = strings.Clone(s)
	n.kept.Put(s, s)
	return s
}

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

// appendCounts journals what has been counted since the last commit and follows from no other entry.
func (c *journalCounts) appendCounts(batch []byte) []byte {
	enc := entry.Encoder{Writer: batch}
	c.offHosts.journal(&enc, c.stats)
	c.durable.cut(c.stats.Pages())
	return enc.Writer
}
