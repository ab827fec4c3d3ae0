package frontier

import (
	"net/netip"
	"time"

	"kumo/internal/base/item"
)

// An Item is a URL that waits. Its place in the queue is the frontier's to give.
type Item = item.Item

// robotsRank is before those of all ordinary items.
const robotsRank = -1

// deferredRank comes after the ranks of all ordinary items. Among deferred items, the deepest in a suspected trap go
// first, so that an endless trap is recognized after as few pages as possible.
const deferredRank = 1 << 30

func popLast[T any](s *[]*T) *T {
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return x
}

// class says which heap an eligible host waits in.
type class uint8

const (
	sound    class = iota // in a session: visited lately
	suspect               // failed or was slow lately
	busy                  // has a worker already and may have another
	inactive              // sound, and not in a session: goes when no host in a session is due
	numClasses
	idle = numClasses // not eligible: in no heap
)

// A host is the queue of one host and its politeness clock.
type host struct {
	key     string
	waiting queue           // the front: in memory; robots.txt fetches go first, and also while parked
	links   []link          // to the rest of the queue on disk, sorted
	parked  map[string]bool // origins whose rules the ordinary items wait for
	deepest int32           // rank that ever waited
	ranks   *hostRanks      // nil: ranks do not change

	inflight int
	seq      uint64        // breaks ties of next, oldest first
	next     time.Time     // not before
	ended    time.Time     // when the last request did, zero before the first
	delay    time.Duration // that it asks for
	own      HostConfig
	row      int8 // visits that it had before others' turn
	session  int  // visits of its session, 0 before the first
	doubtful bool
	away     bool // nothing of its own was ever added, or it was removed, and nothing has come back since

	failures  backoff // in a row
	throttles backoff

	addr netip.Addr
	slot time.Time // its turn at a shared address, zero if it has none

	index   int   // in the heap that it is in
	in      class // which that is
	backing bool  // left alone after a failure or at its own wish

	virtual
}

// backoff counts events in a row. Answers to requests that were under way when the last event was counted are the same
// event.
type backoff struct {
	n    int
	last time.Time
}

func (b *backoff) count(started, now time.Time) {
	if b.n == 0 || started.After(b.last) {
		b.n++
		b.last = now
	}
}

// wait doubles from first with each event, up to most.
func (b *backoff) wait(first, most time.Duration) time.Duration {
	shift := min(max(b.n-1, 0), 20)
	return min(first<<shift, most)
}

// class is where the host belongs now.
func (f *Frontier) classOf(h *host) class {
	first := h.first()
	switch {
	case h.unread, h.inflight >= f.perHost(h), first == lastKey, len(h.parked) > 0 && first.rank != robotsRank:
		return idle
	case h.inflight > 0:
		return busy
	case h.doubtful:
		return suspect
	case h.session == 0 || h.session >= f.cfg.Session:
		return inactive
	}
	return sound
}

// first is the key of the item that goes first, lastKey if there is none. That of a link that was not followed yet may
// be too low.
func (h *host) first() key {
	k := lastKey
	if len(h.waiting) > 0 {
		k = h.waiting[0].key
	}
	if len(h.links) > 0 && h.links[0].key.less(k) {
		k = h.links[0].key
	}
	return k
}

// hostHeap orders hosts by their next time.
type hostHeap []*host

func (q hostHeap) Len() int { return len(q) }
func (q hostHeap) Less(i, j int) bool {
	if !q[i].next.Equal(q[j].next) {
		return q[i].next.Before(q[j].next)
	}
	return q[i].seq < q[j].seq
}
func (q hostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}
func (q *hostHeap) Push(x any) {
	h := x.(*host)
	h.index = len(*q)
	*q = append(*q, h)
}
func (q *hostHeap) Pop() any { return popLast((*[]*host)(q)) }
