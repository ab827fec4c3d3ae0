package p2p

import "sync/atomic"

// reservedQueue is the part of each peer's queue, in bytes, that does not depend on other queues.
const reservedQueue = 64 << 10

// A queue has frames to be sent to one peer. If it is full, the oldest are dropped. Its methods are called by one
// goroutine at a time.
type queue struct {
	maxBytes int           // maximum size
	shared   *atomic.Int64 // free bytes that all peers' queues share, beyond reservedQueue

	buf      []byte // frames, from begin on
	begin    int
	count    int
	borrowed int64 // bytes taken from shared
}

// add appends a message. It returns how many messages were dropped, perhaps including this one.
func (q *queue) add(data []byte) (dropped int) {
	size := len(data) + maxHead
	for q.count > 0 && q.size()+size > q.maxBytes {
		q.dropOldest()
		dropped++
	}
	for !q.borrow(int64(q.size() + size - reservedQueue)) {
		if q.count == 0 {
			return dropped + 1
		}
		q.dropOldest()
		dropped++
	}
	if q.begin > len(q.buf)/2 {
		q.buf = q.buf[:copy(q.buf, q.buf[q.begin:])]
		q.begin = 0
	}
	q.buf = appendFrame(q.buf, data)
	q.count++
	return dropped
}

// dequeue removes and returns all frames and their number. The caller owns the memory.
func (q *queue) dequeue() (frames []byte, n int) {
	frames, n = q.buf[q.begin:], q.count
	q.buf, q.begin, q.count = nil, 0, 0
	q.borrow(0)
	return frames, n
}

func (q *queue) size() int { return len(q.buf) - q.begin }

func (q *queue) dropOldest() {
	size, _, _ := frameSize(q.buf[q.begin:])
	q.begin += size
	q.count--
}

// borrow sets the bytes taken from shared to n; false if there are not enough.
func (q *queue) borrow(n int64) bool {
	n = max(n, 0)
	if left := q.shared.Add(q.borrowed - n); left < 0 && n > q.borrowed {
		q.shared.Add(n - q.borrowed)
		return false
	}
	q.borrowed = n
	return true
}
