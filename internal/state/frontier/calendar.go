package frontier

import (
	"cmp"
	"slices"
)

const (
	turn     = 256 // ms: the least width of a slot
	wideness = 16  // a slot is at most this part as wide as it is far away when it is made
)

// A slot is a span of time, in ticks, with the buckets of the hosts whose next times are in it.
type slot struct {
	from, to int64
	buckets  []*bucket // the last one may take hosts
}

// wide tells of a slot that its hosts have to be put into finer ones when its time is near.
func (s *slot) wide() bool { return s.to-s.from > turn }

// trigger is when a slot is looked at: one that is wide as long before its time as it is wide, others when all their
// hosts are due.
func (s *slot) trigger() int64 {
	if s.wide() {
		return s.from - (s.to - s.from)
	}
	return s.to
}

// A calendar has the slots of one class of cold hosts, near ones narrow and far ones wide: a calendar queue (Brown
// 1988) whose days grow with their distance, as those of a hierarchical timing wheel do (Varghese and Lauck 1987). A
// host is moved to a finer slot a few times before its time comes, by copying.
type calendar struct {
	slots []*slot   // by time
	look  int64     // the least trigger of them
	due   []*bucket // hosts whose times have come or are near
	early []early   // buckets of wide slots
	last  int64     // when the last of these was split, or the first came
}

// An early bucket is one whose hosts are to be put into finer slots before a time.
type early struct {
	*bucket
	before, to int64 // the slot's end
}

// at returns the slot that a tick is in, or makes one; now is the tick at present.
func (c *calendar) at(tick, now int64) *slot {
	i, _ := slices.BinarySearchFunc(c.slots, tick+1, func(s *slot, t int64) int { return int(min(max(s.from-t, -1), 1)) })
	// slots[i] begins behind tick
	if i > 0 && tick < c.slots[i-1].to {
		return c.slots[i-1]
	}
	head := now
	if len(c.slots) > 0 {
		head = min(head, c.slots[0].from) // what is late is a queue: its beginning is what counts as near
	}
	width := int64(turn)
	for width*2*wideness <= tick-head {
		width *= 2
	}
	s := &slot{from: tick &^ (width - 1)}
	s.to = s.from + width
	if i > 0 {
		s.from = max(s.from, c.slots[i-1].to)
	}
	if i < len(c.slots) {
		s.to = min(s.to, c.slots[i].from)
	}
	c.insert(i, s)
	return s
}

func (c *calendar) insert(i int, s *slot) {
	if len(c.slots) == 0 {
		c.look = s.trigger()
	}
	c.look = min(c.look, s.trigger())
	c.slots = slices.Insert(c.slots, i, s)
}

// restore adds a bucket that an earlier process made, in the order of their times; it takes no hosts.
func (c *calendar) restore(b *bucket, from int64) {
	from = from &^ (turn - 1)
	b.closed = true
	if n := len(c.slots); n > 0 && c.slots[n-1].from >= from {
		c.slots[n-1].buckets = append(c.slots[n-1].buckets, b)
		return
	}
	c.insert(len(c.slots), &slot{from: from, to: from + turn, buckets: []*bucket{b}})
}

// advance finds the slots that are to be looked at.
func (c *calendar) advance(now, ahead int64) {
	for len(c.early) > 0 && c.early[0].to <= now+ahead { // nobody came in time: all its hosts are due
		c.due = append(c.due, c.early[0].bucket)
		c.early = c.early[1:]
	}
	if len(c.slots) == 0 || now+ahead < c.look {
		return
	}
	c.look = 1<<63 - 1
	c.slots = slices.DeleteFunc(c.slots, func(s *slot) bool {
		switch {
		case s.to <= now+ahead:
			c.due = append(c.due, s.buckets...)
			return true
		case s.wide() && s.trigger() <= now+ahead:
			if len(c.early) == 0 {
				c.last = now
			}
			for _, b := range s.buckets {
				c.early = append(c.early, early{b, s.from - ahead, s.to})
			}
			return true
		}
		c.look = min(c.look, s.trigger())
		return false
	})
	slices.SortStableFunc(c.early, func(a, b early) int { return cmp.Compare(a.before, b.before) })
}

// nextSplit says when the next early bucket is to be split, so that all are in time and not many at once.
func (c *calendar) nextSplit() int64 {
	lead := max(0, c.early[0].before-c.last)
	return c.last + lead/int64(len(c.early)+1)
}
