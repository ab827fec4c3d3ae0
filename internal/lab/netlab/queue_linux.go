package netlab

import (
	"container/heap"
	"time"

	"golang.org/x/sys/unix"
)

// A parcel is a packet that is on its way.
type parcel struct {
	due  time.Time
	turn uint64 // among those that are due at the same time
	line *line
	data []byte
}

// Parcels are packets by the time at which they are due, and then by that at which they came.
type parcels struct {
	all   ordered
	turns uint64
}

func (q *parcels) empty() bool      { return len(q.all) == 0 }
func (q *parcels) first() time.Time { return q.all[0].due }
func (q *parcels) pop() parcel      { return heap.Pop(&q.all).(parcel) }

func (q *parcels) push(p parcel) {
	q.turns++
	p.turn = q.turns
	heap.Push(&q.all, p)
}

// wait is the time until the first is due; nil: for ever.
func (q *parcels) wait(now time.Time) *unix.Timespec {
	if q.empty() {
		return nil
	}
	t := unix.NsecToTimespec(int64(max(0, q.first().Sub(now))))
	return &t
}

// ordered is a heap.
type ordered []parcel

func (o ordered) Len() int      { return len(o) }
func (o ordered) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

func (o ordered) Less(i, j int) bool {
	if !o[i].due.Equal(o[j].due) {
		return o[i].due.Before(o[j].due)
	}
	return o[i].turn < o[j].turn
}

func (o *ordered) Push(x any) { *o = append(*o, x.(parcel)) }

func (o *ordered) Pop() any {
	last := len(*o) - 1
	p := (*o)[last]
	(*o)[last] = parcel{}
	*o = (*o)[:last]
	return p
}
