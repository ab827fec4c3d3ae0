package frontier

import (
	"bytes"
	"slices"
	"time"
)

// A HostIterator goes through hosts, each with its whole queue, while the frontier goes on. Of the hosts that it is to
// see nothing may be added or done meanwhile; what is handed out of them counts as waiting, and must come back with
// Postpone.
//
// A host may become hot or cold at any time. So a tour begins with the list of those that are in memory and the numbers
// of those that are not, and looks each up where it is when its turn comes: with a cold one all of its bucket, so that
// each is read once. What is in blocks it reads later, from segments that stay until Close.
type HostIterator struct {
	f     *Frontier
	want  func(key string) bool
	names []string // in memory when they were found, yet to be seen
	cold  []uint64 // bits of the cold hosts that are yet to be seen, by number
	at    uint32   // those before are seen
	found []*HostQueue
	ended bool
}

// Iterate begins a tour of the hosts where something waits and of which want is true. It is asked with the frontier
// locked.
func (f *Frontier) Iterate(want func(key string) bool) *HostIterator {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tours++
	t := &HostIterator{f: f, want: want, at: 1}
	for _, h := range f.hosts {
		if want(h.key) && (len(h.flying) > 0 || h.count() > 0) {
			t.names = append(t.names, h.key)
		}
	}
	slices.Sort(t.names) // so that the order does not depend on chance
	if f.disk == nil {
		return t
	}
	f.disk.segments.pins++
	t.cold = make([]uint64, f.disk.table.n/64+1)
	for id := uint32(1); id <= f.disk.table.n; id++ {
		if r := f.disk.table.at(id); r.count > 0 && !r.is(isHot) {
			t.cold[id/64] |= 1 << (id % 64)
		}
	}
	return t
}

// Close ends the tour, and the use of its stays.
func (t *HostIterator) Close() {
	t.f.mu.Lock()
	defer t.f.mu.Unlock()
	if t.ended {
		return
	}
	t.ended = true
	if t.f.tours--; t.f.tours == 0 {
		t.f.spent = nil
	}
	if t.f.disk != nil {
		t.f.disk.segments.pins--
		t.f.disk.segments.bury()
	}
}

// Next is the next host, nil after the last.
func (t *HostIterator) Next() (*HostQueue, error) {
	for len(t.found) == 0 {
		more, err := t.look()
		if err != nil || !more {
			return nil, err
		}
	}
	s := t.found[0]
	t.found[0], t.found = nil, t.found[1:]
	return s, nil
}

// look looks at one more place; false if there is none.
func (t *HostIterator) look() (bool, error) {
	f := t.f
	f.mu.Lock()
	defer f.mu.Unlock()
	more := false
	err := f.paged(func() (err error) {
		more, err = t.lookOnce()
		return err
	})
	return more, err
}

func (t *HostIterator) lookOnce() (bool, error) {
	f := t.f
	if len(t.names) > 0 {
		key := t.names[0]
		if h := f.hosts[key]; h != nil {
			t.found = append(t.found, f.stayHot(h))
		} else if err := t.lookAt(f.disk.table.find(f.disk.table.identity(key))); err != nil {
			return true, err
		}
		t.names = t.names[1:]
		return true, nil
	}
	for ; int(t.at) < 64*len(t.cold); t.at++ {
		if t.has(t.at) {
			return true, t.lookAt(t.at)
		}
	}
	return false, nil
}

func (t *HostIterator) has(id uint32) bool {
	return int(id/64) < len(t.cold) && t.cold[id/64]&(1<<(id%64)) != 0
}

func (t *HostIterator) seen(id uint32) {
	if t.has(id) {
		t.cold[id/64] &^= 1 << (id % 64)
	}
}

// lookAt sees a host that was cold, or is, and those that are in the same place.
func (t *HostIterator) lookAt(id uint32) error {
	d := t.f.disk
	switch r := d.table.at(id); {
	case r.is(isHot):
		t.lookAtHot()
	case r.bucket != 0:
		return t.lookAtBucket(d.buckets[r.bucket], id)
	case r.count > 0: // parked
		b, err := t.f.block(r.top)
		if err != nil {
			return err
		}
		if t.want(b.host) {
			t.found = append(t.found, t.f.stayCold(b.host, id, nil))
		}
	}
	t.seen(id)
	return nil
}

// lookAtHot makes a list of the hosts that have come into memory since the tour began.
func (t *HostIterator) lookAtHot() {
	from := len(t.names)
	for _, h := range t.f.hosts {
		if h.id == 0 || !t.has(h.id) {
			continue
		}
		t.seen(h.id)
		if t.want(h.key) {
			t.names = append(t.names, h.key)
		}
	}
	slices.Sort(t.names[from:])
}

func (t *HostIterator) lookAtBucket(b *bucket, id uint32) error {
	parts, err := t.f.parts(b)
	if err != nil {
		return err
	}
	for len(parts) > 0 {
		n := sameHost(parts)
		if host := parts[0].id; host == id || t.has(host) {
			s, err := t.f.sleeper(parts[:n], nil)
			if err != nil {
				return err
			}
			t.seen(host)
			if t.want(s.name) {
				t.found = append(t.found, t.f.stayCold(s.name, host, s.items))
			}
		}
		parts = parts[n:]
	}
	return nil
}

// A HostQueue is a tour's at one host: its queue as it was when the tour came by.
type HostQueue struct {
	Key   string
	Wait  time.Duration // until its next visit; not positive if that is due
	Asked time.Duration // the delay that it asks for

	peek    peek
	since   uint64 // when that was, by the frontier's spends
	dropped map[goneKey]int
	items   []Item // read, and not yet given
}

func (f *Frontier) stayHot(h *host) *HostQueue {
	f.applyMoves(h)
	s := &HostQueue{Key: h.key, Wait: h.next.Sub(f.cfg.Now()), Asked: h.delay, since: f.spends,
		peek: peek{f: f, host: h.key, links: slices.Clone(h.links)}}
	for _, it := range h.flying {
		s.peek.items.push(f.entry(h.key, it))
	}
	s.keep(h.waiting)
	return s
}

func (f *Frontier) stayCold(key string, id uint32, items []entry) *HostQueue {
	r := f.disk.table.at(id)
	s := &HostQueue{Key: key, Wait: f.disk.time(r.next()).Sub(f.cfg.Now()), Asked: r.requestedDelay(),
		since: f.spends, peek: peek{f: f, host: key}}
	if r.top != 0 {
		s.peek.links = []link{{at: r.top, key: key0}}
	}
	s.keep(items)
	return s
}

// keep copies entries, whose room is used again.
func (s *HostQueue) keep(entries []entry) {
	for _, e := range entries {
		e.data = bytes.Clone(e.data)
		s.peek.items.push(e)
	}
}

// stayStep is how many items are read in one hold of the lock.
const stayStep = 64

// Next is the item that comes next in the queue, nil after the last: all that waits and is not suppressed, but for
// fetches of robots.txt. One that came late is Late again, so that it may go behind all others elsewhere, too.
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
	f := s.peek.f
	f.mu.Lock()
	defer f.mu.Unlock()
	s.items = make([]Item, 0, stayStep)
	return f.paged(s.readOn)
}

func (s *HostQueue) readOn() error {
	for len(s.items) < stayStep {
		it, err := s.peek.any()
		if it == nil || err != nil {
			return err
		}
		if it.Robots != "" || s.drops(it.URL) {
			continue
		}
		it.Rank, it.Seq = 0, 0
		s.items = append(s.items, *it)
	}
	return nil
}

// drops says of an item that was suppressed when the queue was copied that it was, once for each time that Suppress was
// called: there may be another of its URL that was not. The item may have come up since, and be suppressed no more.
func (s *HostQueue) drops(url string) bool {
	f := s.peek.f
	if len(f.gone) == 0 && len(f.spent) == 0 {
		return false
	}
	k := goneKeyOf(url)
	if s.dropped[k] >= f.suppressedAt(k, s.since) {
		return false
	}
	if s.dropped == nil {
		s.dropped = map[goneKey]int{}
	}
	s.dropped[k]++
	return true
}
