package frontier

import (
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

// Walk goes through all that waits, host by host in no order, and makes sure on the way that what is on disk is as it was written: that
// segments are whole, and queues as long as their hosts' records say, sorted, and each the host's own. Fetches of robots.txt and
// what is Gone are left out. The frontier does not change, and stands still meanwhile.
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
	for id := uint32(1); id <= f.disk.table.n; id++ {
		if r := f.disk.table.at(id); r.top != 0 && !r.is(isHot) {
			if err := w.cold(r); err != nil {
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
			body, err := s.body(newLoc(id, at))
			if err != nil {
				w.Bad(err)
				break
			}
			at += int64(len(body) + frameLen)
		}
	}
}

func (w *walk) hot(h *host) error {
	for _, it := range h.waiting {
		if err := w.tell(h.key, it); err != nil {
			return err
		}
	}
	w.todo = append(w.todo[:0], h.links...)
	return w.blocks(func(b *block) bool { return b.host == h.key })
}

func (w *walk) cold(r *record) error {
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
		b, err := w.f.disk.segments.read(l.at)
		if err != nil {
			w.Bad(err)
			continue
		}
		items := b.items[min(l.at.skip(), len(b.items)):]
		if err := fits(&l, &b, items, own); err != nil {
			w.Bad(damaged(w.f.disk.segments.name(l.at.segment()), l.at.offset(), err))
			continue
		}
		for i := range items {
			if err := w.tell(b.host, &items[i]); err != nil {
				return err
			}
		}
		w.todo = append(w.todo, b.links...)
	}
	return nil
}

// fits says whether a block is the one that a link leads to.
func fits(l *link, b *block, items []Item, own func(*block) bool) error {
	n := uint32(len(items))
	for i := range b.links {
		n += b.links[i].count
	}
	switch {
	case !own(b):
		return fmt.Errorf("%w: the block is that of %s, which is another host", errQueue, b.host)
	case n != l.count:
		return fmt.Errorf("%w: %d items are there and below, not %d", errQueue, n, l.count)
	case !slices.IsSortedFunc(items, func(a, b Item) int { return a.compare(b.key) }):
		return fmt.Errorf("%w: its items are not in order", errQueue)
	}
	return nil
}

func (w *walk) tell(host string, it *Item) error {
	if it.Robots != "" || w.f.willGo(it.URL) {
		return nil
	}
	return w.Item(host, it)
}
