package frontier

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"kumo/internal/state/rank"
)

// A Visit is one URL of a host, handed out to one worker. The worker returns it with Done or Postpone.
type Visit struct {
	Item
	Host string // whose queue had the URL; a slice if hosts are divided into slices

	Started time.Time // when the visit was handed out

	host       *host
	item       *Item     // as it was in the queue
	nextBefore time.Time // the host's next time before the visit
	nextSet    time.Time // the host's next time as set for the visit
	removals   int       // the host's value at the start of the visit
	suspect    bool
	wait       time.Duration // see Wait
}

// Wait returns the host's wait after a visit that Done has ended; at least the delay in effect when the visit began.
func (v *Visit) Wait() time.Duration { return max(v.wait, v.Delay()) }

// Delay returns the host's delay when the visit began.
func (v *Visit) Delay() time.Duration { return v.nextSet.Sub(v.Started) }

// An Outcome is the outcome of a visit with regard to its host.
type Outcome uint8

// The outcomes.
const (
	NoRequest Outcome = iota // no request was made; the delay does not apply
	Answered                 // any response except Throttled
	Throttled                // status 429 or 503: the host backs off
	Failed                   // no response
)

// A Result is the result of a visit.
type Result struct {
	Outcome    Outcome
	RetryAfter time.Duration // of a Throttled response; 0 if it has none
	// duration of the exchange alone, without waits of this process; 0: since the visit was handed out
	Took    time.Duration
	Requeue []Item // items of the host that become pending again, such as the visit's own for a retry
}

// A dispatcher hands out the items of hosts in memory, and receives the results of visits. The frontier's lock guards
// it.
type dispatcher struct {
	bench      *workbench
	queues     *queueStore
	ranking    *ranking
	suppressed *suppression
	filter     *filter
	reads      *readQueue
	inFlight   int // number of visits
}

// handOut hands out the host's first item. It returns nil if there is none, if it must be read from disk, or if another
// host may go first.
func (d *dispatcher) handOut(h *host, now time.Time) (*Visit, error) {
	d.bench.saver.saveHost(h)
	if d.refresh(h) {
		d.bench.place(h)
		return nil, nil
	}
	it, err := d.popFirst(h)
	if it == nil {
		d.bench.place(h)
		return nil, err
	}
	v := &Visit{
		Item:       *it,
		Host:       h.key,
		host:       h,
		item:       it,
		nextBefore: h.clock.next,
		Started:    now,
		removals:   h.visits.removals,
		suspect:    h.position.class == suspect,
	}
	v.QueueLast = false // the mark is for the queue only
	d.inFlight++
	d.bench.schedule.begin(h.visits.n == 0, v.suspect)
	h.visits.n++
	if h.clock.session++; h.clock.session > d.bench.session {
		h.clock.session = 1
	}
	d.bench.residents.endReadAhead(h)
	h.visits.items = append(h.visits.items, it)
	d.bench.polite.begin(&h.clock, now)
	v.nextSet = h.clock.next
	d.bench.setBackingOff(h, false)
	d.bench.place(h)
	return v, nil
}

// refresh updates the ranks of a host's items in memory, and reports whether the rank of its first item is worse than
// its place in the schedule.
func (d *dispatcher) refresh(h *host) (fell bool) {
	if d.ranking.ranker == nil {
		return false
	}
	d.ranking.refresh(&h.queue)
	d.reads.rerankIfNeeded(h)
	return h.queue.bestRank() > h.position.ready.rank
}

// popFirst removes the first item. It returns nil if the host has no item to hand out now.
func (d *dispatcher) popFirst(h *host) (*Item, error) {
	q := &h.queue
	for {
		if err := d.queues.loadFirst(q); errors.Is(err, errNotResident) {
			d.reads.addFront(h)
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		if d.bench.classOf(h) == idle {
			return nil, nil
		}
		if q.movesMatter() {
			q.applyMoves()
			continue
		}
		e := d.queues.pop(q)
		d.bench.pending--
		it, err := e.item(h.key)
		if err != nil {
			return nil, fmt.Errorf("decode an item of %s: %w", h.key, err)
		}
		switch {
		case !d.filter.admits(h.key, it.URL): // an earlier version admitted it
		case h.visits.has(&it):
		case d.requeueIfFallen(h, e, &it):
			return nil, nil
		case it.Robots != "" || !d.suppressed.consume(it.URL):
			return &it, nil
		}
	}
}

// loadFront reads blocks of a host until its first n items, or all, are in memory.
func (d *dispatcher) loadFront(h *host, n int) error {
	d.bench.saver.saveHost(h)
	return d.queues.loadFront(&h.queue, n, d.suppressed)
}

// removeMatching removes the matching items in memory. It returns those that are not suppressed.
func (d *dispatcher) removeMatching(h *host, match func(*Item) bool) (taken []Item) {
	q := &h.queue
	before := len(q.front)
	q.front = slices.DeleteFunc(q.front, func(e entry) bool {
		it, err := e.item(h.key)
		if err != nil || !match(&it) {
			return false // popFirst reports the error
		}
		it.QueueLast = false
		if !d.suppressed.consume(it.URL) {
			taken = append(taken, it)
		}
		d.bench.residents.charge(q, -e.cost())
		return true
	})
	d.bench.pending -= before - len(q.front)
	q.front.init()
	return taken
}

// requeueIfFallen puts an item back if its importance is less than half of the value of its rank.
func (d *dispatcher) requeueIfFallen(h *host, e entry, it *Item) bool {
	to := d.ranking.current(it)
	if to <= e.rank+rank.Steps {
		return false
	}
	e.rank = to
	h.queue.deepest = max(h.queue.deepest, to)
	d.bench.pending++
	d.queues.push(&h.queue, e)
	return true
}

// end ends a visit. The caller must place the host afterwards.
func (d *dispatcher) end(v *Visit) {
	h := v.host
	d.bench.saver.saveHost(h)
	h.visits.end(v.item)
	d.inFlight--
	h.visits.n--
	d.bench.schedule.end(h.visits.n == 0, v.suspect)
	h.position.seq = d.ranking.nextAge()
	d.bench.leader.signal()
}

// done ends a visit with a result. It returns the host's wait that follows.
func (d *dispatcher) done(v *Visit, r Result, now time.Time) (wait time.Duration) {
	h := v.host
	d.end(v)
	if r.Outcome != NoRequest {
		wait = d.bench.polite.applyResult(&h.clock, v, r, now, h.visits.n == 0)
		v.wait = wait
		if r.Outcome >= Throttled {
			d.bench.setBackingOff(h, true)
		}
	} else if h.clock.next.Equal(v.nextSet) {
		h.clock.next = v.nextBefore // no request was made, and no other visit has set the clock since
	}
	for _, it := range r.Requeue {
		d.requeue(v, it)
	}
	d.bench.place(h)
	return wait
}

// postpone ends a visit without a request. The host is not visited before until.
func (d *dispatcher) postpone(v *Visit, until time.Time) {
	h := v.host
	d.end(v)
	d.requeue(v, v.Item)
	if h.clock.next.Equal(v.nextSet) {
		h.clock.next = v.nextBefore
	}
	h.clock.postpone(until)
	d.bench.place(h)
}

// requeue adds an item returned by a visit, unless the host was removed since.
func (d *dispatcher) requeue(v *Visit, it Item) {
	h := v.host
	switch {
	case v.removals != h.visits.removals:
	case !d.filter.admits(v.Host, it.URL):
	case it.Seq == v.item.Seq && v.item.QueueLast && !it.QueueLast: // a QueueLast item keeps its place
		it.QueueLast, it.Rank = true, v.item.Rank
		d.bench.add(h, &it)
	default:
		d.ranking.refreshRank(&h.queue, &it)
		h.queue.deepest = d.ranking.assign(&it, h.queue.deepest)
		d.bench.add(h, &it)
	}
}
