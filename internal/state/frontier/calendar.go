package frontier

import (
	"cmp"
	"slices"
)

const (
	minSlotWidth = 256 // ms: the least width of a slot
	slotDivisor  = 16  // a slot is at most this part as wide as it is far away when it is made
)

// A slot is a span of time, in ticks, with the buckets of the hosts whose next times are in it.
type slot struct {
	from, to int64
	buckets  []*bucket // the last one may take hosts
}

// isWide reports whether the slot's hosts have to be put into finer slots when its time is near.
func (s *slot) isWide() bool { return s.to-s.from > minSlotWidth }

// trigger is when a slot is processed: a wide one as long before its time as it is wide, others when all their hosts
// are due.
func (s *slot) trigger() int64 {
	if s.isWide() {
		return s.from - (s.to - s.from)
	}
	return s.to
}

// A calendar has the slots of one class of cold hosts, near ones narrow and far ones wide: a calendar queue (Brown
// 1988) whose days grow with their distance, as those of a hierarchical timing wheel do (Varghese and Lauck 1987). A
// host is moved to a finer slot a few times before its time comes, by copying.
type calendar struct {
	slots   []*slot       // by time
	trigger int64         // the least trigger of the slots
	due     []*bucket     // of hosts whose times have come or are near
	early   []earlyBucket // buckets of wide slots
	last    int64         // tick when the last of these was split, or the first was added
}

// An early bucket's hosts are to be put into finer slots before a time.
type earlyBucket struct {
	*bucket
	before, to int64 // the slot's end
}

// at returns the slot of a tick, which it creates if need be.
func (c *calendar) at(tick, now int64) *slot {
	i, _ := slices.BinarySearchFunc(c.slots, tick+1, func(s *slot, t int64) int { return int(min(max(s.from-t, -1), 1)) })
	// slots[i] begins behind tick
	if i > 0 && tick < c.slots[i-1].to {
		return c.slots[i-1]
	}
	head := now
	if len(c.slots) > 0 {
		head = min(head, c.slots[0].from) // if hosts are late, the first slot counts as near
	}
	width := int64(minSlotWidth)
	for width*2*slotDivisor <= tick-head {
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
		c.trigger = s.trigger()
	}
	c.trigger = min(c.trigger, s.trigger())
	c.slots = slices.Insert(c.slots, i, s)
}

// restore adds a bucket of a checkpoint. Buckets are restored in the order of their times.
func (c *calendar) restore(b *bucket, from int64) {
	from = from &^ (minSlotWidth - 1)
	if n := len(c.slots); n > 0 && c.slots[n-1].from >= from {
		c.slots[n-1].buckets = append(c.slots[n-1].buckets, b)
		return
	}
	c.insert(len(c.slots), &slot{from: from, to: from + minSlotWidth, buckets: []*bucket{b}})
}

// advance processes the slots whose trigger has come: their buckets become due or early.
func (c *calendar) advance(now, ahead int64) {
	for len(c.early) > 0 && c.early[0].to <= now+ahead { // it was not split in time: all its hosts are due
		c.due = append(c.due, c.early[0].bucket)
		c.early = c.early[1:]
	}
	if len(c.slots) == 0 || now+ahead < c.trigger {
		return
	}
	c.trigger = 1<<63 - 1
	c.slots = slices.DeleteFunc(c.slots, func(s *slot) bool {
		switch {
		case s.to <= now+ahead:
			c.due = append(c.due, s.buckets...)
			return true
		case s.isWide() && s.trigger() <= now+ahead:
			if len(c.early) == 0 {
				c.last = now
			}
			for _, b := range s.buckets {
				c.early = append(c.early, earlyBucket{b, s.from - ahead, s.to})
			}
			return true
		}
		c.trigger = min(c.trigger, s.trigger())
		return false
	})
	slices.SortStableFunc(c.early, func(a, b earlyBucket) int { return cmp.Compare(a.before, b.before) })
}

// nextSplit is the tick at which the next early bucket is to be split, so that all are in time and not many at once.
func (c *calendar) nextSplit() int64 {
	lead := max(0, c.early[0].before-c.last)
	return c.last + lead/int64(len(c.early)+1)
}

// splitDue returns the next early bucket if it is to be split now, else nil.
func (c *calendar) splitDue(tick int64) *bucket {
	if len(c.early) == 0 || tick < c.nextSplit() {
		return nil
	}
	return c.early[0].bucket
}

// split forgets the first early bucket.
func (c *calendar) split(tick int64) { c.early, c.last = c.early[1:], tick }

// makeAllDue makes all buckets due.
func (c *calendar) makeAllDue() {
	for _, e := range c.early {
		c.due = append(c.due, e.bucket)
	}
	for _, s := range c.slots {
		c.due = append(c.due, s.buckets...)
	}
	c.early, c.slots, c.trigger = nil, nil, 0
}

// next is the tick at which there is something to do, if there is: wanted says that due hosts should be loaded.
func (c *calendar) next(ahead int64, wanted bool) (at int64, some bool) {
	at = 1<<63 - 1
	if len(c.slots) > 0 {
		at = c.trigger - ahead
	}
	if len(c.early) > 0 {
		at = min(at, c.nextSplit())
	}
	if len(c.due) > 0 && wanted {
		at = 0
	}
	return at, at < 1<<63-1
}
