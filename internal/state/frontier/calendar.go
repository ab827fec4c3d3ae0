package frontier

import (
	"cmp"
	"slices"
)

const (
	minSlotWidth = 256 // least width of a slot in ms
	slotDivisor  = 16  // a slot is created with at most 1/slotDivisor of its distance as its width
)

// A slot is a span of time, in ticks, with the buckets of the hosts whose next times lie in it.
type slot struct {
	from, to int64
	buckets  []*bucket // only the last may accept hosts
}

// isWide reports whether the slot's hosts must be moved to finer slots before its time.
func (s *slot) isWide() bool { return s.to-s.from > minSlotWidth }

// trigger returns the tick at which a slot is processed. For a wide slot that is one width before its start, for others
// their end, when all hosts are due.
func (s *slot) trigger() int64 {
	if s.isWide() {
		return s.from - (s.to - s.from)
	}
	return s.to
}

// A calendar holds the slots of one class of cold hosts: narrow slots for the near future, wide ones for the far. It is
// a calendar queue (Brown 1988) whose days grow with distance, as in a hierarchical timing wheel (Varghese and Lauck
// 1987). A host is copied to a finer slot a few times before its time.
type calendar struct {
	slots   []*slot       // sorted by time
	trigger int64         // least trigger of the slots
	due     []*bucket     // buckets of hosts that are due or almost due
	early   []earlyBucket // buckets of wide slots, to be split
	last    int64         // tick of the last split, or when the first early bucket was added
}

// The hosts of an earlyBucket must be moved to finer slots by a deadline.
type earlyBucket struct {
	*bucket
	before, to int64 // the deadline; the slot's end
}

// at returns the slot of a tick. It creates the slot if needed.
func (c *calendar) at(tick, now int64) *slot {
	i, _ := slices.BinarySearchFunc(c.slots, tick+1, func(s *slot, t int64) int { return int(min(max(s.from-t, -1), 1)) })
	// slots[i] begins after tick
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

// restore adds a bucket from a checkpoint. Buckets must be restored in the order of their times.
func (c *calendar) restore(b *bucket, from int64) {
	from = from &^ (minSlotWidth - 1)
	if n := len(c.slots); n > 0 && c.slots[n-1].from >= from {
		c.slots[n-1].buckets = append(c.slots[n-1].buckets, b)
		return
	}
	c.insert(len(c.slots), &slot{from: from, to: from + minSlotWidth, buckets: []*bucket{b}})
}

// advance processes the slots whose trigger has passed: their buckets become due or early.
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

// nextSplit returns the tick at which to split the next early bucket. It spreads the splits evenly, and all are in
// time.
func (c *calendar) nextSplit() int64 {
	lead := max(0, c.early[0].before-c.last)
	return c.last + lead/int64(len(c.early)+1)
}

// splitDue returns the next early bucket if it is time to split it, else nil.
func (c *calendar) splitDue(tick int64) *bucket {
	if len(c.early) == 0 || tick < c.nextSplit() {
		return nil
	}
	return c.early[0].bucket
}

// split removes the first early bucket.
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

// next returns the tick of the next work, if there is any. wanted means that due hosts should be loaded.
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
