package frontier

import (
	"container/heap"
	"math/bits"
	"time"

	"kumo/internal/state/rank"
)

// A class selects the heap of an eligible host.
type class uint8

const (
	sound    class = iota // in a session: visited recently
	suspect               // failed or was slow recently
	busy                  // has a worker already and may have another
	inactive              // sound, and not in a session: goes when no host in a session is due
	numClasses
	idle = numClasses // not eligible, in no heap
)

// A schedule decides which eligible host in memory goes next, and limits how many hosts of each class are visited at
// once. The frontier's lock guards it.
//
// If hosts go by rank, due hosts go by the rank of their first item; of equal ranks, the host that is due for longer
// goes first. Aging prevents starvation: whenever a host's wait has doubled, its priority improves as if the importance
// of its first URL had doubled. So a host whose first URL is worth a thousandth of the others' is visited after a
// thousand times their wait, counted as at least half of firstBoost. Of equal priorities, hosts in a session go first.
type schedule struct {
	heaps     [numClasses]hostHeap  // by next time
	ready     [numClasses]readyHeap // due hosts, if hosts go by rank
	boosts    boostHeap             // the hosts in ready, by the time of their next boost
	byRank    bool
	slots     int // limit of hosts visited at once
	slowAfter time.Duration
	active    int // hosts with visits under way
	suspects  int // visits to suspects under way
}

// A position is a host's position in the schedule.
type position struct {
	seq   uint64 // breaks ties of next times, least first
	index int    // in the heap
	class class
	ready *ready // nil unless hosts go by rank
}

// firstBoost is the wait after which a host's priority improves for the first time.
const firstBoost = time.Second

// ready contains the priority of a due host.
type ready struct {
	queued    bool
	rank      int32 // of its first item, or a lower bound
	priority  int32 // rank, improved by aging; the least goes first
	nextBoost time.Time
	index     int // in the heap of boosts
}

// hostHeap orders hosts by next time.
type hostHeap []*host

func (q hostHeap) Len() int { return len(q) }
func (q hostHeap) Less(i, j int) bool {
	a, b := q[i], q[j]
	if !a.clock.next.Equal(b.clock.next) {
		return a.clock.next.Before(b.clock.next)
	}
	return a.position.seq < b.position.seq
}
func (q hostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position.index, q[j].position.index = i, j
}
func (q *hostHeap) Push(x any) {
	h := x.(*host)
	h.position.index = len(*q)
	*q = append(*q, h)
}
func (q *hostHeap) Pop() any { return popLast((*[]*host)(q)) }

// readyHeap orders hosts by priority, then by how long they have been due.
type readyHeap struct{ hostHeap }

func (q readyHeap) Less(i, j int) bool { return q.hostHeap[i].goesBefore(q.hostHeap[j]) }

func (h *host) goesBefore(o *host) bool {
	a, b := h.position.ready.priority, o.position.ready.priority
	if a != b {
		return a < b
	}
	if (h.position.class == inactive) != (o.position.class == inactive) {
		return o.position.class == inactive
	}
	if !h.clock.next.Equal(o.clock.next) {
		return h.clock.next.Before(o.clock.next)
	}
	return h.position.seq < o.position.seq
}

// boostHeap orders ready hosts by the time of their next boost.
type boostHeap []*host

func (q boostHeap) Len() int { return len(q) }
func (q boostHeap) Less(i, j int) bool {
	return q[i].position.ready.nextBoost.Before(q[j].position.ready.nextBoost)
}
func (q boostHeap) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position.ready.index, q[j].position.ready.index = i, j
}
func (q *boostHeap) Push(x any) {
	h := x.(*host)
	h.position.ready.index = len(*q)
	*q = append(*q, h)
}
func (q *boostHeap) Pop() any { return popLast((*[]*host)(q)) }

// add adds a host to the heap of its class.
func (s *schedule) add(h *host) { heap.Push(&s.heaps[h.position.class], h) }

// remove removes a host from its heap, if it is in one.
func (s *schedule) remove(h *host) {
	p := &h.position
	switch {
	case p.class == idle:
	case p.ready == nil || !p.ready.queued:
		heap.Remove(&s.heaps[p.class], p.index)
	default:
		p.ready.queued = false
		heap.Remove(&s.ready[p.class], p.index)
		heap.Remove(&s.boosts, p.ready.index)
	}
}

// retime calls change, which may change next times, and rebuilds the heaps.
func (s *schedule) retime(change func()) {
	for c := range s.ready {
		for _, h := range s.ready[c].hostHeap {
			h.position.ready.queued = false
			heap.Push(&s.heaps[c], h)
		}
		s.ready[c] = readyHeap{}
	}
	s.boosts = nil
	change()
	for c := range s.heaps {
		heap.Init(&s.heaps[c])
	}
}

// next returns the next host among the classes with a free slot, nil if there is none: the host with the least next
// time, which may be in the future. Of due hosts, those in a session go before inactive ones. If hosts go by rank, the
// rank decides instead.
func (s *schedule) next(now time.Time) *host {
	if s.byRank {
		if h := s.firstReady(now); h != nil {
			return h
		}
	}
	active, other := s.soonest(now, sound, busy, suspect), s.soonest(now, inactive)
	switch {
	case other == nil:
		return active
	case active == nil:
		return other
	case other.clock.next.Before(active.clock.next) && (active.position.class == suspect || active.clock.next.After(now)):
		return other
	}
	return active
}

// soonest returns the host with the least next time among those classes that have a free slot.
func (s *schedule) soonest(now time.Time, classes ...class) (best *host) {
	for _, c := range classes {
		q := s.heaps[c]
		if len(q) > 0 && s.hasSlot(c, now) && (best == nil || q[0].clock.next.Before(best.clock.next)) {
			best = q[0]
		}
	}
	return best
}

func (s *schedule) hasSlot(c class, now time.Time) bool {
	switch c {
	case sound, inactive:
		return s.active < s.slots
	case suspect:
		return s.active < s.slots && (s.suspects < max(1, s.slots/4) || s.hasSpareSlot(now))
	}
	return true
}

// sparePart: suspects leave one slot in sparePart free beyond their quarter.
const sparePart = 16

// hasSpareSlot reports whether there is a slot that no sound host needs now, or within the time that makes a host a
// suspect.
func (s *schedule) hasSpareSlot(now time.Time) bool {
	if s.active >= s.slots-max(1, s.slots/sparePart) {
		return false
	}
	for _, c := range [...]class{sound, inactive} {
		q := s.heaps[c]
		if s.ready[c].Len() > 0 || len(q) > 0 && !q[0].clock.next.After(now.Add(s.slowAfter)) {
			return false
		}
	}
	return true
}

// begin takes a slot for a visit to a host; end releases it.
func (s *schedule) begin(first, suspect bool) {
	if first {
		s.active++
	}
	if suspect {
		s.suspects++
	}
}

func (s *schedule) end(last, suspect bool) {
	if last {
		s.active--
	}
	if suspect {
		s.suspects--
	}
}

// firstReady returns the due host that goes next among the classes with a free slot.
func (s *schedule) firstReady(now time.Time) *host {
	s.makeReady(now)
	var best *host
	for c := range s.ready {
		q := s.ready[c].hostHeap
		if len(q) > 0 && s.hasSlot(class(c), now) && (best == nil || q[0].goesBefore(best)) {
			best = q[0]
		}
	}
	return best
}

// makeReady finds the hosts that have become due, and applies the boosts that have come.
func (s *schedule) makeReady(now time.Time) {
	for c := range s.heaps {
		for q := &s.heaps[c]; len(*q) > 0 && !(*q)[0].clock.next.After(now); {
			h := heap.Pop(q).(*host)
			h.updatePriority(now)
			h.position.ready.queued = true
			heap.Push(&s.ready[c], h)
			heap.Push(&s.boosts, h)
		}
	}
	for len(s.boosts) > 0 && !s.boosts[0].position.ready.nextBoost.After(now) {
		h := s.boosts[0]
		h.updatePriority(now)
		heap.Fix(&s.boosts, 0)
		heap.Fix(&s.ready[h.position.class], h.position.index)
	}
}

// updatePriority updates the priority of a due host.
func (h *host) updatePriority(now time.Time) {
	r := h.position.ready
	level := bits.Len64(uint64(max(now.Sub(h.clock.next), 0) / firstBoost))
	r.rank = h.queue.bestRank()
	r.priority = r.rank - int32(level*rank.Steps)
	r.nextBoost = h.clock.next.Add(firstBoost << level)
}

// len returns the number of eligible hosts of a class.
func (s *schedule) len(c class) int { return len(s.heaps[c]) + s.ready[c].Len() }

func (s *schedule) isEmpty() bool {
	for c := range s.heaps {
		if s.len(class(c)) > 0 {
			return false
		}
	}
	return true
}

// waiting returns the number of eligible hosts without a visit under way.
func (s *schedule) waiting() int { return s.len(sound) + s.len(suspect) + s.len(inactive) }

// firstWaiting returns the host among these with the least next time, nil if there is none.
func (s *schedule) firstWaiting() (best *host) {
	for _, c := range [...]class{sound, inactive, suspect} {
		for _, q := range [...]hostHeap{s.heaps[c], s.ready[c].hostHeap} {
			if len(q) > 0 && (best == nil || q[0].clock.next.Before(best.clock.next)) {
				best = q[0]
			}
		}
	}
	return best
}
