package netlab

import (
	"time"

	"kumo/internal/lab/sim/queue"

	"golang.org/x/sys/unix"
)

// A parcel is a packet that is on its way.
type parcel struct {
	due  time.Time
	turn uint64 // among those that are due at the same time
	line *line
	data []byte
}

// Before reports whether it is due first, or came first.
func (p parcel) Before(o parcel) bool {
	return p.due.Before(o.due) || p.due.Equal(o.due) && p.turn < o.turn
}

// parcels are packets by the time at which they are due, and then by that at which they came.
type parcels struct {
	queue.Heap[parcel]
	turns uint64
}

func (q *parcels) add(p parcel) {
	q.turns++
	p.turn = q.turns
	q.Push(p)
}

// wait is the time until the first is due; nil: for ever.
func (q *parcels) wait(now time.Time) *unix.Timespec {
	if len(q.Heap) == 0 {
		return nil
	}
	t := unix.NsecToTimespec(int64(max(0, q.Heap[0].due.Sub(now))))
	return &t
}
