package overlay

import (
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/xor"
)

// A region is a part of the space, all ids with a common prefix, and all nodes in it. A report of all nodes close to
// one id contains the closest nodes of every other id in the region, so it serves lookups of all these ids.
type region struct {
	nodes []Contact
	until time.Duration
}

type regionKey struct {
	prefix xor.ID // the prefix, followed by zeros
	bits   int
}

// regions are the regions that other nodes have reported recently.
type regions struct {
	all *bounded.Recent[regionKey, region]
	// shortest and longest prefix, in bits
	minBits, maxBits int
}

const (
	maxRegions = 1024
	regionTTL  = 30 * time.Second
)

func newRegions() regions {
	return regions{all: bounded.NewRecent[regionKey, region](maxRegions), minBits: xor.Bits, maxBits: -1}
}

// add adds a report of contacts, sorted by distance from an id, that contains all nodes so close to it. whole reports
// that there are no other nodes at all.
func (r *regions) add(id xor.ID, closest []Contact, whole bool, now time.Duration) {
	bits, n := 0, len(closest)
	if !whole { // there may be other nodes at least as far as the last one
		bits = depth(id, closest[n-1].ID) + 1
		for n > 0 && depth(id, closest[n-1].ID) < bits {
			n--
		}
	}
	if n == 0 {
		return
	}
	r.all.Put(regionKey{id.Truncate(bits), bits}, region{closest[:n:n], now + regionTTL})
	r.minBits, r.maxBits = min(r.minBits, bits), max(r.maxBits, bits)
}

// closest returns the n nodes closest to an id, the closest first; nil if they are not known.
func (r *regions) closest(id xor.ID, n int, now time.Duration) []Contact {
	for bits := r.maxBits; bits >= r.minBits; bits-- {
		part, ok := r.all.Get(regionKey{id.Truncate(bits), bits})
		if !ok || part.until <= now || len(part.nodes) < n {
			continue
		}
		nodes := slices.Clone(part.nodes)
		slices.SortFunc(nodes, func(a, b Contact) int { return xor.Compare(a.ID, b.ID, id) })
		return nodes[:n:n]
	}
	return nil
}
