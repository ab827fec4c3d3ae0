package frontier

import (
	"slices"
	"time"
)

// A HostIterator iterates over hosts, each with its whole queue, while the frontier is in use. Meanwhile no items of
// these hosts may be added or done. Items that are handed out count as pending, and must be returned with Postpone.
//
// A host may be loaded or evicted at any time. So an iteration starts with a list of the hosts in memory and the record
// numbers of the others, and finds each host where it is at its turn. A cold host is read with all of its bucket, so
// that each bucket is read once. Blocks are read later, from segments that are pinned until Close.
type HostIterator struct {
	from  *Inspector
	want  func(key string) bool
	names []string // hosts in memory at the start, not yet visited
	cold  []uint64 // bitmap of the records of cold hosts that are not yet visited
	at    uint32   // records before it have been visited
	found []*HostQueue
	ended bool
}

func (i *Inspector) iterate(want func(key string) bool) *HostIterator {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.suppressed.openView()
	i.pages.pin()
	t := &HostIterator{from: i, want: want, at: 1}
	for _, h := range i.bench.hosts {
		if want(h.key) && (len(h.visits.items) > 0 || h.queue.count() > 0) {
			t.names = append(t.names, h.key)
		}
	}
	slices.Sort(t.names) // for a deterministic order
	if i.cold == nil {
		return t
	}
	t.cold = make([]uint64, i.cold.table.n/64+1)
	for id := uint32(1); id <= i.cold.table.n; id++ {
		if i.cold.table.at(id).isCold() {
			t.cold[id/64] |= 1 << (id % 64)
		}
	}
	return t
}

// Close ends the iteration. Its HostQueues must not be used any more.
func (t *HostIterator) Close() {
	t.from.mu.Lock()
	defer t.from.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	t.from.suppressed.closeView()
	t.from.pages.unpin()
}

// Next returns the next host, nil after the last.
func (t *HostIterator) Next() (*HostQueue, error) {
	for len(t.found) == 0 {
		more, err := t.step()
		if err != nil || !more {
			return nil, err
		}
	}
	s := t.found[0]
	t.found[0], t.found = nil, t.found[1:]
	return s, nil
}

// step visits one more host or bucket, and returns false if there is none.
func (t *HostIterator) step() (more bool, err error) {
	t.from.mu.Lock()
	defer t.from.mu.Unlock()
	err = t.from.pages.run(func() (err error) {
		more, err = t.tryStep()
		return err
	})
	return more, err
}

func (t *HostIterator) tryStep() (more bool, err error) {
	if len(t.names) > 0 {
		if h, id := t.from.find(t.names[0]); h != nil {
			t.found = append(t.found, t.hot(h))
		} else if err := t.visit(id); err != nil {
			return true, err
		}
		t.names = t.names[1:]
		return true, nil
	}
	for ; int(t.at) < 64*len(t.cold); t.at++ {
		if t.has(t.at) {
			return true, t.visit(t.at)
		}
	}
	return false, nil
}

// has reports whether the cold host with a record is not yet visited.
func (t *HostIterator) has(id uint32) bool {
	return int(id/64) < len(t.cold) && t.cold[id/64]&(1<<(id%64)) != 0
}

func (t *HostIterator) setVisited(id uint32) {
	if t.has(id) {
		t.cold[id/64] &^= 1 << (id % 64)
	}
}

// visit visits the host of a record, with the other hosts in memory or in its bucket.
func (t *HostIterator) visit(id uint32) error {
	i := t.from
	switch r := i.cold.table.at(id); {
	case r.is(isHot):
		t.listHot()
	case r.bucket != 0:
		return t.visitBucket(i.buckets.byID[r.bucket], id)
	case r.count > 0: // parked
		b, err := i.pages.block(r.top)
		if err != nil {
			return err
		}
		if t.want(b.host) {
			t.found = append(t.found, t.coldQueue(b.host, r, nil))
		}
	}
	t.setVisited(id)
	return nil
}

// listHot lists the hosts that were loaded since the iteration started.
func (t *HostIterator) listHot() {
	from := len(t.names)
	for _, h := range t.from.bench.hosts {
		if id := h.residence.id; id != 0 && t.has(id) {
			t.setVisited(id)
			if t.want(h.key) {
				t.names = append(t.names, h.key)
			}
		}
	}
	slices.Sort(t.names[from:])
}

func (t *HostIterator) visitBucket(b *bucket, id uint32) error {
	return t.from.reader.hosts(b, func(parts []part) error {
		host := parts[0].id
		if host != id && !t.has(host) {
			return nil
		}
		s, err := t.from.reader.host(parts, nil)
		if err != nil {
			return err
		}
		t.setVisited(host)
		if t.want(s.name) {
			t.found = append(t.found, t.coldQueue(s.name, t.from.cold.table.at(host), s.items))
		}
		return nil
	})
}

// hot copies the queue of a host in memory, with the items under way.
func (t *HostIterator) hot(h *host) *HostQueue {
	i := t.from
	i.bench.saver.saveHost(h)
	h.queue.applyMoves()
	q := i.viewOf(h.key)
	q.links = slices.Clone(h.queue.links)
	for _, it := range h.visits.items {
		q.items.push(i.ranking.entry(h.key, it))
	}
	q.addEntries(h.queue.front)
	return t.queue(q, h.clock.next, h.clock.requestedDelay)
}

// coldQueue copies the queue of a host that is not in memory.
func (t *HostIterator) coldQueue(key string, r *record, items []entry) *HostQueue {
	return t.queue(t.from.viewCold(key, r, items), t.from.cold.time(r.next()), r.requestedDelay())
}

func (t *HostIterator) queue(q *queueView, next time.Time, asked time.Duration) *HostQueue {
	i := t.from
	return &HostQueue{Key: q.host, Wait: next.Sub(i.now()), RequestedDelay: asked, from: i, view: q}
}

// A HostQueue is one host of an iteration, with its queue as of its turn in the iteration.
type HostQueue struct {
	Key            string
	Wait           time.Duration // until its next visit; 0 or less if it is due
	RequestedDelay time.Duration // the delay that it requests

	from  *Inspector
	view  *queueView
	items []Item // read but not yet returned
}

// readStep is the number of items read in one hold of the lock.
const readStep = 64

// Next returns the next item of the queue, nil after the last. It returns all pending items that are not suppressed,
// except robots.txt fetches. A QueueLast item is marked so again, so that it goes last elsewhere too.
func (s *HostQueue) Next() (*Item, error) {
	if len(s.items) == 0 {
		if err := s.read(); err != nil || len(s.items) == 0 {
			return nil, err
		}
	}
	it := &s.items[0]
	s.items = s.items[1:]
	return it, nil
}

func (s *HostQueue) read() error {
	s.from.mu.Lock()
	defer s.from.mu.Unlock()
	s.items = make([]Item, 0, readStep)
	return s.from.pages.run(s.tryRead)
}

func (s *HostQueue) tryRead() error {
	for len(s.items) < readStep {
		it, err := s.view.any()
		if it == nil || err != nil {
			return err
		}
		if it.Robots != "" || s.view.suppressed.drops(it.URL) {
			continue
		}
		it.Rank, it.Seq = 0, 0
		s.items = append(s.items, *it)
	}
	return nil
}
