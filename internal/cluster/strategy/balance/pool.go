package balance

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy"
)

// A pool contains requested hosts without an owner. A new leader starts with an empty pool; nodes repeat their
// requests.
type pool struct {
	hosts  map[string]*pooled
	links  int
	whole  int       // hosts that are not slices
	sorted []*pooled // largest first; nil: not sorted
}

// A pooled is a host in the pool.
type pooled struct {
	host       string
	finders    []finder
	links      int // of the node with most, since nodes may have the same links; at least 1
	reportedAt time.Time
	removed    bool // no longer in the pool
}

// whole reports whether h is a host and not a slice, whose name no host can have.
func (h *pooled) whole() bool { return !strings.Contains(h.host, "#") }

// A finder is a node with links to a host.
type finder struct {
	node  strategy.Node
	links int
}

// maxFinders is the maximum number of nodes that are informed of a decision; others must ask again.
const maxFinders = 32

func newPool() pool { return pool{hosts: map[string]*pooled{}} }

// add sets a node's number of links to a host.
func (l *pool) add(now time.Time, host string, from strategy.Node, links int) {
	h := l.hosts[host]
	if h == nil {
		h = &pooled{host: host}
		l.hosts[host] = h
		if h.whole() {
			l.whole++
		}
	}
	h.reportedAt = now
	at := slices.IndexFunc(h.finders, func(f finder) bool { return f.node == from })
	switch {
	case at >= 0 && h.finders[at].links == links:
		return
	case at >= 0:
		h.finders[at].links = links
	case len(h.finders) < maxFinders:
		h.finders = append(h.finders, finder{from, links})
	}
	was := h.links
	h.links = 1
	for _, f := range h.finders {
		h.links = max(h.links, f.links)
	}
	l.links += h.links - was
	l.sorted = nil
}

// removeHost removes and returns a host; nil if it is not in the pool.
func (l *pool) removeHost(host string) *pooled {
	h := l.hosts[host]
	if h != nil {
		l.remove(h)
	}
	return h
}

func (l *pool) remove(h *pooled) {
	delete(l.hosts, h.host)
	if h.whole() {
		l.whole--
	}
	l.links -= h.links
	h.removed = true
}

// hasWholeHosts reports whether there are hosts, and not only slices.
func (l *pool) hasWholeHosts() bool { return l.whole > 0 }

// bySize returns all hosts, the largest first.
func (l *pool) bySize() []*pooled {
	if l.sorted == nil && len(l.hosts) > 0 {
		l.sorted = slices.SortedFunc(maps.Values(l.hosts), func(a, b *pooled) int {
			return cmp.Or(cmp.Compare(b.links, a.links), strings.Compare(a.host, b.host))
		})
	}
	l.sorted = slices.DeleteFunc(l.sorted, func(h *pooled) bool { return h.removed })
	return l.sorted
}

// forget drops a departed node's links, and the hosts to which only it had links; takeover nodes will report them.
func (l *pool) forget(n strategy.Node) {
	for _, h := range l.hosts {
		h.finders = slices.DeleteFunc(h.finders, func(f finder) bool { return f.node == n })
		if len(h.finders) == 0 {
			l.remove(h)
		}
	}
}

// expire removes hosts that no node has requested since a time, because the nodes with links to them have left.
func (l *pool) expire(since time.Time) {
	for _, h := range l.hosts {
		if h.reportedAt.Before(since) {
			l.remove(h)
		}
	}
}
