package balance

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/strategy"
)

// A pool has hosts that are wanted and nobody's. It is lost with its leader; nodes tell it anew.
type pool struct {
	hosts  map[string]*pooled
	links  int
	sorted []*pooled // the largest first; nil: they are to be sorted
}

// A pooled is a host that waits to be given away.
type pooled struct {
	host       string
	finders    []finder
	links      int // of the one that has most, as others may have the same; 1 at least
	reportedAt time.Time
	removed    bool // it is not in the pool any more
}

// whole reports whether it is no slice of a host: such are named as no host can be.
func (h *pooled) whole() bool { return !strings.Contains(h.host, "#") }

// A finder is a node with links for a host.
type finder struct {
	node  strategy.Node
	links int
}

// maxFinders is how many nodes are told of a decision without asking again.
const maxFinders = 32

func newPool() pool { return pool{hosts: map[string]*pooled{}} }

// add notes that a node has so many links for a host.
func (l *pool) add(now time.Time, host string, from strategy.Node, links int) {
	h := l.hosts[host]
	if h == nil {
		h = &pooled{host: host}
		l.hosts[host] = h
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

// take takes a host out; nil: it is not there.
func (l *pool) take(host string) *pooled {
	h := l.hosts[host]
	if h != nil {
		l.remove(h)
	}
	return h
}

func (l *pool) remove(h *pooled) {
	delete(l.hosts, h.host)
	l.links -= h.links
	h.removed = true
}

// bySize are all hosts, the largest first.
func (l *pool) bySize() []*pooled {
	if l.sorted == nil && len(l.hosts) > 0 {
		l.sorted = slices.SortedFunc(maps.Values(l.hosts), func(a, b *pooled) int {
			return cmp.Or(cmp.Compare(b.links, a.links), strings.Compare(a.host, b.host))
		})
	}
	l.sorted = slices.DeleteFunc(l.sorted, func(h *pooled) bool { return h.removed })
	return l.sorted
}

// forget lets go of a node's links, and of hosts for which no other has any: its heirs tell them anew.
func (l *pool) forget(n strategy.Node) {
	for _, h := range l.hosts {
		h.finders = slices.DeleteFunc(h.finders, func(f finder) bool { return f.node == n })
		if len(h.finders) == 0 {
			l.remove(h)
		}
	}
}

// expire lets go of hosts of which nobody has spoken since a time: who had links for them is gone.
func (l *pool) expire(since time.Time) {
	for _, h := range l.hosts {
		if h.reportedAt.Before(since) {
			l.remove(h)
		}
	}
}
