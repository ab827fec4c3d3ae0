package frontier

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Walker is told what Walk finds.
type Walker struct {
	Item func(host string, it *Item) error // an item that waits; an error ends the walk
	Bad  func(error)                       // what is not as it was written, and where; the walk goes on
}

// Walk goes through all that waits, host by host in no order, and makes sure on the way that what is on disk is as it
// was written: that segments are whole, and queues as long as their hosts' records say, sorted, and each the host's
// own. Fetches of robots.txt and what is suppressed are left out. The frontier does not change, and nothing else is to
// be done with it meanwhile.
func (f *Frontier) Walk(told Walker) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := walk{Walker: told, f: f}
	if f.disk != nil {
		w.segments()
	}
	for _, h := range f.hosts {
		if err := w.hot(h); err != nil {
			return err
		}
	}
	if f.disk == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(f.disk.buckets)) {
		if err := w.bucket(f.disk.buckets[id]); err != nil {
			return err
		}
	}
	for id := uint32(1); id <= f.disk.table.n; id++ {
		if r := f.disk.table.at(id); r.count > 0 && r.bucket == 0 && !r.is(isHot) {
			if err := w.parked(r); err != nil {
				return err
			}
		}
	}
	return nil
}

type walk struct {
	Walker
	f    *Frontier
	todo []link // of the queue at hand
}

var errQueue = errors.New("damaged queue")

// segments reads the files from their beginning to their end: compaction will read what is out of use, too.
func (w *walk) segments() {
	s := w.f.disk.segments
	for _, id := range slices.Sorted(maps.Keys(s.all)) {
		seg, at := s.all[id], int64(0)
		for at < seg.size {
			n := 0
			err := w.f.paged(func() error {
				frame, err := s.frame(newLoc(id, at), readAhead)
				n = len(frame) + frameLen
				return err
			})
			if err != nil {
				w.Bad(err)
				break
			}
			at += int64(n)
		}
	}
}

func (w *walk) hot(h *host) error {
	if err := w.tell(h.key, h.waiting); err != nil {
		return err
	}
	w.todo = append(w.todo[:0], h.links...)
	return w.blocks(func(b *block) bool { return b.host == h.key })
}

// bucket looks at the hosts that a bucket has, and at the rest of their queues.
func (w *walk) bucket(b *bucket) error {
	var parts []part
	err := w.f.paged(func() error {
		found, err := w.f.parts(b)
		for _, p := range found {
			p.data = bytes.Clone(p.data)
			parts = append(parts, p)
		}
		return err
	})
	if err != nil {
		w.Bad(err)
		return nil
	}
	for len(parts) > 0 {
		n := sameHost(parts)
		s, err := w.f.sleeper(parts[:n], nil)
		r := w.f.disk.table.at(parts[0].id)
		parts = parts[n:]
		if err == nil {
			err = w.f.disk.suits(r, &s)
		}
		if err != nil {
			w.Bad(fmt.Errorf("bucket %d: %w", b.id, err))
			continue
		}
		if err := w.tell(s.name, s.items); err != nil {
			return err
		}
		if w.todo = w.todo[:0]; s.rest > 0 {
			w.todo = append(w.todo, link{at: r.top, count: s.rest})
		}
		if err := w.blocks(func(b *block) bool { return b.host == s.name }); err != nil {
			return err
		}
	}
	return nil
}

// suits says whether what a bucket has of a host is what the record says.
func (d *virtualizer) suits(r *record, s *coldHost) error {
	hi, lo := d.table.identity(s.name)
	switch n := len(s.items) + s.gone + int(s.rest); {
	case hi != r.hi || lo != r.lo:
		return fmt.Errorf("%w: %s is where another host should be", errQueue, s.name)
	case n != int(r.count):
		return fmt.Errorf("%w: %s has %d items, not %d", errQueue, s.name, n, r.count)
	case (s.rest > 0) != (r.top != 0):
		return fmt.Errorf("%w: nobody knows where the rest of that of %s is", errQueue, s.name)
	}
	return nil
}

func (w *walk) parked(r *record) error {
	w.todo = append(w.todo[:0], link{at: r.top, count: r.count})
	return w.blocks(func(b *block) bool {
		hi, lo := w.f.disk.table.identity(b.host)
		return hi == r.hi && lo == r.lo
	})
}

// blocks goes through the blocks of one queue. A block's links are read after it, so that a long chain needs no room.
func (w *walk) blocks(own func(*block) bool) error {
	for len(w.todo) > 0 {
		l := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		var b block
		err := w.f.paged(func() (err error) {
			b, err = w.f.block(l.at)
			return err
		})
		if err != nil {
			w.Bad(err)
			continue
		}
		if err := fits(&l, &b, own); err != nil {
			w.Bad(damaged(w.f.disk.segments.name(l.at.segment()), l.at.offset(), err))
			continue
		}
		if err := w.tell(b.host, b.items); err != nil {
			return err
		}
		w.todo = append(w.todo, b.links...)
	}
	return nil
}

// fits says whether a block is the one that a link leads to.
func fits(l *link, b *block, own func(*block) bool) error {
	n := uint32(len(b.items))
	for i := range b.links {
		n += b.links[i].count
	}
	switch {
	case !own(b):
		return fmt.Errorf("%w: the block is that of %s, which is another host", errQueue, b.host)
	case n != l.count:
		return fmt.Errorf("%w: %d items are there and below, not %d", errQueue, n, l.count)
	case !slices.IsSortedFunc(b.items, func(a, b entry) int { return a.compare(b.key) }):
		return fmt.Errorf("%w: its items are not in order", errQueue)
	}
	return nil
}

func (w *walk) tell(host string, entries []entry) error {
	for i := range entries {
		it, err := w.f.dec.item(host, &entries[i])
		if err != nil {
			w.Bad(fmt.Errorf("an item of %s: %w", host, err))
			continue
		}
		it.Late = false
		if it.Robots != "" || w.f.mayBeSuppressed(it.URL) {
			continue
		}
		if err := w.Item(host, &it); err != nil {
			return err
		}
	}
	return nil
}
