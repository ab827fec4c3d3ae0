package frontier

import "math"

// An entry is an item in a queue: its key, and the rest of the item encoded, which takes a quarter of the memory.
type entry struct {
	key
	data []byte
}

const entryCost = 56 // approximate bytes in memory, without the data

func (e *entry) cost() int64 { return entryCost + int64(len(e.data)) }

// A key orders the items of a host.
type key struct {
	rank int32
	url  uint32 // number of the URL for a Move, see urlOf; 0 if the item cannot be moved, and in links
	seq  uint64
}

func (k key) less(o key) bool { return k.rank < o.rank || k.rank == o.rank && k.seq < o.seq }

func (k key) compare(o key) int {
	switch {
	case k.less(o):
		return -1
	case o.less(k):
		return 1
	}
	return 0
}

var (
	key0    = key{rank: robotsRank}                         // sorts before all others
	lastKey = key{rank: math.MaxInt32, seq: math.MaxUint64} // sorts after all others
)

// queue is a heap of entries, sorted by rank, then age.
type queue []entry

func (q *queue) push(e entry) {
	*q = append(*q, e)
	q.up(len(*q) - 1)
}

func (q *queue) pop() entry {
	h := *q
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h[last] = entry{}
	*q = h[:last]
	q.down(0)
	return first
}

func (q queue) init() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q queue) up(i int) {
	e := q[i]
	for i > 0 {
		up := (i - 1) / 2
		if !e.less(q[up].key) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = e
}

func (q queue) down(i int) {
	if i >= len(q) {
		return
	}
	e := q[i]
	for {
		next := 2*i + 1
		if next >= len(q) {
			break
		}
		if next+1 < len(q) && q[next+1].less(q[next].key) {
			next++
		}
		if !q[next].less(e.key) {
			break
		}
		q[i] = q[next]
		i = next
	}
	q[i] = e
}
