package overlay

import (
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/xor"
)

// A region is a part of the space, all ids with the same first bits, and all nodes in it. Who knows all nodes close to
// one id has told of them, and with that of those closest to every other id there: one look-up serves all.
type region struct {
	nodes []Contact
	until time.Duration
}

type regionKey struct {
	prefix xor.ID // the bits, and zeros
	bits   int
}

// regions are those that others have told of lately.
type regions struct {
	all *bounded.Recent[regionKey, region]
	// how many bits they have, the least and the most
	minBits, maxBits int
}

const (
	maxRegions = 1024
	regionTTL  = 30 * time.Second
)

func newRegions() regions {
	return regions{all: bounded.NewRecent[regionKey, region](maxRegions), minBits: xor.Bits, maxBits: -1}
}

// note takes in contacts, sorted by distance from an id, which are all nodes so close to it. whole says that there are
// no others at all.
func (r *regions) add(id xor.ID, closest []Contact, whole bool, now time.Duration) {
	bits, n := 0, len(closest)
	if !whole { // the last may have others beside it that are farther
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

// closest are the nodes closest to an id, the closest first, if so many are known.
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
