package mesh

import (
	"time"

	"kumo/internal/base/xor"
)

// DefaultAlone is a Config's Alone.
const DefaultAlone = 15 * time.Second

// A solitude decides what belongs to a node that has lost all others without a farewell.
//
// Such a node cannot tell why. The others may have died, it may be cut off for a while, or it has slept and they have
// ended the crawl. So for a while it takes nothing that was theirs, as if they still lived, and continues with its own
// hosts. If what it knew has become stale, it does not even continue with these, since others may have fetched them
// meanwhile. After that it continues as the only node.
type isolation struct {
	core   *core
	wait   time.Duration
	resume func() // continues as the only node

	since time.Time // when the last other node died; zero: there is one, there never was, or the last has left
	until time.Time // the others count as alive until then
	fresh time.Time // of the last Fresh in the meantime, which has not taken effect
	left  bool      // the node that was gone last has said farewell
}

func (a *isolation) waits() bool { return a.core.now.Before(a.until) }

// occupiedBits returns the bits whose buckets count as occupied. now are those that are; before is the last result.
func (a *isolation) occupiedBits(now, before xor.ID, leaving bool) xor.ID {
	switch {
	case now != xor.ID{}:
		a.since, a.until, a.fresh = time.Time{}, time.Time{}, time.Time{}
	case before == xor.ID{} || leaving || a.left:
	case a.since.IsZero():
		a.since, a.until = a.core.now, a.core.now.Add(a.wait)
		a.core.log.Warn("no other node answers any more: what was theirs is left to them for now", "wait", a.wait)
		a.core.after(a.wait, a.resume)
		return before
	case a.waits():
		return before
	}
	return now
}
