package frontier

import (
	"container/heap"
	"math/bits"
	"time"

	"kumo/internal/state/rank"
)

// Where hosts go by rank, those whose time has come go by that of their first item, and of equal ones those that are
// due for longer. So that none starves, a host's place improves by as much as twice the importance would whenever its
// wait has doubled: one whose first URL is worth a thousandth of the others' is visited after a thousand times the
// wait, half of firstRise at the least. Of equal ones those in a session go first.

// firstRise is the wait after which a host's place improves first.
const firstRise = time.Second

// A ready host is one whose time has come.
type ready struct {
	is       bool
	rank     int32 // of its first item, at the best
	standing int32 // rank, improved by its wait
	rise     time.Time
	index    int // in the heap of rises
}

// readyHeap orders hosts by standing, then by how long they are due.
type readyHeap struct{ hostHeap }

func (q readyHeap) Less(i, j int) bool { return q.hostHeap[i].goesBefore(q.hostHeap[j]) }

func (h *host) goesBefore(o *host) bool {
	a, b := h.ranks.standing, o.ranks.standing
	if a != b {
		return a < b
	}
	if (h.in == inactive) != (o.in == inactive) {
		return o.in == inactive
	}
	if !h.next.Equal(o.next) {
		return h.next.Before(o.next)
	}
	return h.seq < o.seq
}

// riseHeap orders ready hosts by when their places improve.
type riseHeap []*host

func (q riseHeap) Len() int           { return len(q) }
func (q riseHeap) Less(i, j int) bool { return q[i].ranks.rise.Before(q[j].ranks.rise) }
func (q riseHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].ranks.index, q[j].ranks.index = i, j
}
func (q *riseHeap) Push(x any) {
	h := x.(*host)
	h.ranks.index = len(*q)
	*q = append(*q, h)
}
func (q *riseHeap) Pop() any { return popLast((*[]*host)(q)) }

// ranksHosts reports whether hosts go by rank.
func (f *Frontier) ranksHosts() bool { return f.cfg.RankHosts || f.cfg.Ranker != nil }

// bestRank is the rank of the first item, or one before it.
func (h *host) bestRank() int32 { return min(h.first().rank, h.ranks.best) }

// stand says how a host stands now.
func (h *host) stand(now time.Time) {
	r := h.ranks
	level := bits.Len64(uint64(max(now.Sub(h.next), 0) / firstRise))
	r.rank = h.bestRank()
	r.standing = r.rank - int32(level*rank.Steps)
	r.rise = h.next.Add(firstRise << level)
}

// makeReady finds the hosts whose time has come, and those that have waited for long.
func (f *Frontier) makeReady(now time.Time) {
	for c := range f.heaps {
		for q := &f.heaps[c]; len(*q) > 0 && !(*q)[0].next.After(now); {
			h := heap.Pop(q).(*host)
			h.stand(now)
			h.ranks.is = true
			heap.Push(&f.ready[c], h)
			heap.Push(&f.rises, h)
		}
	}
	for len(f.rises) > 0 && !f.rises[0].ranks.rise.After(now) {
		h := f.rises[0]
		h.stand(now)
		heap.Fix(&f.rises, 0)
		heap.Fix(&f.ready[h.in], h.index)
	}
}

// firstReady is the host that goes first of those whose time has come and that may have a place.
func (f *Frontier) firstReady(now time.Time) *host {
	f.makeReady(now)
	var best *host
	for c := range f.ready {
		q := f.ready[c].hostHeap
		if len(q) > 0 && f.hasPlace(class(c), now) && (best == nil || q[0].goesBefore(best)) {
			best = q[0]
		}
	}
	return best
}

// unheap takes a host out of the heap that it is in.
func (f *Frontier) unheap(h *host) {
	if h.ranks == nil || !h.ranks.is {
		heap.Remove(&f.heaps[h.in], h.index)
		return
	}
	h.ranks.is = false
	heap.Remove(&f.ready[h.in], h.index)
	heap.Remove(&f.rises, h.ranks.index)
}

// unready takes all hosts back to those whose time has yet to come.
func (f *Frontier) unready() {
	for c := range f.ready {
		for _, h := range f.ready[c].hostHeap {
			h.ranks.is = false
			heap.Push(&f.heaps[c], h)
		}
		f.ready[c] = readyHeap{}
	}
	f.rises = nil
}
