package frontier

import (
	"slices"

	"kumo/internal/base/item"
)

// An Item is a pending URL. The frontier sets its Seq.
type Item = item.Item

// robotsRank sorts before the ranks of all ordinary items.
const robotsRank = -1

// deferredRank sorts after the ranks of all ordinary items. Among deferred items, the deepest in a suspected trap go
// first, so that an endless trap is recognized after as few pages as possible.
const deferredRank = 1 << 30

func popLast[T any](s *[]*T) *T {
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return x
}

// A host is a host in memory. Each part of the frontier owns a part of it.
type host struct {
	key       string
	position  position // of schedule; next to clock, as the heaps use both
	clock     clock    // of politeness
	queue     hostQueue
	visits    visits
	addr      addressTurn // of addresses
	residence residence
	parked    map[string]bool // origins whose robots.txt the ordinary items wait for
	away      bool            // no item of its own was added since it was created or removed
}

// hasTurn reports whether the host's next time is its turn at a shared address.
func (h *host) hasTurn() bool { return !h.addr.turn.IsZero() && h.addr.turn.Equal(h.clock.next) }

// visits are a host's visits under way.
type visits struct {
	n        int
	removals int     // number of times the host was removed
	items    []*Item // their items, for a checkpoint; without those from before a removal
}

// end removes the item of a visit.
func (v *visits) end(it *Item) {
	for i, other := range v.items {
		if other == it {
			last := len(v.items) - 1
			v.items[i], v.items[last] = v.items[last], nil
			v.items = v.items[:last]
			return
		}
	}
}

// has reports whether a visit to an item's URL is under way. One visit is enough, however often the URL was pushed.
func (v *visits) has(it *Item) bool {
	if v.n == 0 || it.Recrawl {
		return false
	}
	return slices.ContainsFunc(v.items, func(f *Item) bool { return f.URL == it.URL && f.Robots == it.Robots })
}
