package mesh

import (
	"time"

	"kumo/internal/base/xor"
)

// DefaultAlone is the default of Config.AloneWait.
const DefaultAlone = 15 * time.Second

// An isolation decides which hosts belong to a node that has lost all others without notice.
//
// Such a node cannot find out why. The others may have died, it may be cut off for a while, or it has slept and they
// have ended the crawl. So for a while it takes none of their hosts, as if they still lived, and continues with its
// own. If its knowledge has become stale, it does not even continue with these, since others may have fetched them.
// After that it continues as the only node.
type isolation struct {
	core   *core
	wait   time.Duration
	resume func() // continues as the only node

	since time.Time // when the last other node died; zero: there is another node, there never was, or the last has left
	until time.Time // the others count as alive until then
	fresh time.Time // of the last Fresh during the wait, which has not taken effect
	left  bool      // the last node that was gone had announced its leave
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
		a.core.log.Warn("no other node answers: not taking over their hosts for now", "wait", a.wait)
		a.core.after(a.wait, a.resume)
		return before
	case a.waits():
		return before
	}
	return now
}
