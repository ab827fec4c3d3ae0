package frontier

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// A Walker contains the functions that Walk calls.
type Walker struct {
	Item    func(host string, it *Item) error // a pending item; an error ends the walk
	Damaged func(error)                       // damage and its location; the walk continues
}

// Walk visits all pending items, host by host in no particular order, except robots.txt fetches and suppressed items.
// It also verifies the data on disk: segments are undamaged, and queues are sorted, belong to their hosts, and have the
// length in the hosts' records. No other method may be called meanwhile.
func (i *Inspector) Walk(visit Walker) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	w := walk{Walker: visit, from: i, suppressed: i.suppressed.view()}
	if i.cold != nil {
		w.segments()
	}
	for _, h := range i.bench.hosts {
		if err := w.host(h); err != nil {
			return err
		}
	}
	if i.cold == nil {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(i.buckets.byID)) {
		if err := w.bucket(i.buckets.byID[id]); err != nil {
			return err
		}
	}
	for id := uint32(1); id <= i.cold.table.n; id++ {
		if r := i.cold.table.at(id); r.isCold() && r.bucket == 0 {
			if err := w.parked(r); err != nil {
				return err
			}
		}
	}
	return nil
}

type walk struct {
	Walker
	from       *Inspector
	suppressed suppressedView
	todo       []link // links of the current queue not yet followed
}

var errQueue = errors.New("damaged queue")

// segments verifies all files from beginning to end, because compaction will also read unused frames.
func (w *walk) segments() {
	pages := w.from.pages
	all := pages.segments.all
	for _, id := range slices.Sorted(maps.Keys(all)) {
		seg, at := all[id], int64(0)
		for at < seg.size {
			n := 0
			err := pages.run(func() error {
				frame, err := pages.frame(newLoc(id, at), readAhead)
				n = len(frame) + frameLen
				return err
			})
			if err != nil {
				w.Damaged(err)
				break
			}
			at += int64(n)
		}
	}
}

func (w *walk) host(h *host) error {
	if err := w.items(h.key, h.queue.front); err != nil {
		return err
	}
	w.todo = append(w.todo[:0], h.queue.links...)
	return w.blocks(func(b *block) bool { return b.host == h.key })
}

// bucket verifies the hosts in a bucket, and the rest of their queues.
func (w *walk) bucket(b *bucket) error {
	var parts []part
	err := w.from.pages.run(func() error {
		found, err := w.from.reader.read(b)
		for _, p := range found {
			p.data = bytes.Clone(p.data)
			parts = append(parts, p)
		}
		return err
	})
	if err != nil {
		w.Damaged(err)
		return nil
	}
	return eachHost(parts, func(parts []part) error {
		s, err := w.from.reader.host(parts, nil)
		r := w.from.cold.table.at(parts[0].id)
		if err == nil {
			err = w.from.cold.check(r, &s)
		}
		if err != nil {
			w.Damaged(fmt.Errorf("bucket %d: %w", b.id, err))
			return nil
		}
		if err := w.items(s.name, s.items); err != nil {
			return err
		}
		if w.todo = w.todo[:0]; s.rest > 0 {
			w.todo = append(w.todo, link{at: r.top, count: s.rest})
		}
		return w.blocks(func(b *block) bool { return b.host == s.name })
	})
}

// check returns an error if a host in a bucket does not match its record.
func (c *coldHosts) check(r *record, s *coldHost) error {
	hi, lo := c.table.identity(s.name)
	switch n := len(s.items) + s.staleRobots + int(s.rest); {
	case hi != r.hi || lo != r.lo:
		return fmt.Errorf("%w: found %s in the place of another host", errQueue, s.name)
	case n != int(r.count):
		return fmt.Errorf("%w: %s has %d items, want %d", errQueue, s.name, n, r.count)
	case (s.rest > 0) != (r.top != 0):
		return fmt.Errorf("%w: the record of %s and its bucket disagree on whether it has blocks", errQueue, s.name)
	}
	return nil
}

func (w *walk) parked(r *record) error {
	w.todo = append(w.todo[:0], link{at: r.top, count: r.count})
	return w.blocks(func(b *block) bool {
		hi, lo := w.from.cold.table.identity(b.host)
		return hi == r.hi && lo == r.lo
	})
}

// blocks visits the blocks of one queue. It follows a block's links after its items, so that a long chain needs little
// memory.
func (w *walk) blocks(own func(*block) bool) error {
	pages := w.from.pages
	for len(w.todo) > 0 {
		l := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		var b block
		err := pages.run(func() (err error) {
			b, err = pages.block(l.at)
			return err
		})
		if err != nil {
			w.Damaged(err)
			continue
		}
		if err := l.check(&b, own); err != nil {
			w.Damaged(pages.damaged(l.at, err))
			continue
		}
		if err := w.items(b.host, b.items); err != nil {
			return err
		}
		w.todo = append(w.todo, b.links...)
	}
	return nil
}

// check returns an error if a block does not match its link.
func (l *link) check(b *block, own func(*block) bool) error {
	n := uint32(len(b.items))
	for i := range b.links {
		n += b.links[i].count
	}
	switch {
	case !own(b):
		return fmt.Errorf("%w: the block belongs to another host, %s", errQueue, b.host)
	case n != l.count:
		return fmt.Errorf("%w: %d items in the block and below, want %d", errQueue, n, l.count)
	case !slices.IsSortedFunc(b.items, func(a, b entry) int { return a.compare(b.key) }):
		return fmt.Errorf("%w: items are out of order", errQueue)
	}
	return nil
}

func (w *walk) items(host string, entries []entry) error {
	for i := range entries {
		it, err := entries[i].item(host)
		if err != nil {
			w.Damaged(fmt.Errorf("decode an item of %s: %w", host, err))
			continue
		}
		it.QueueLast = false
		if it.Robots != "" || w.suppressed.drops(it.URL) {
			continue
		}
		if err := w.Item(host, &it); err != nil {
			return err
		}
	}
	return nil
}
