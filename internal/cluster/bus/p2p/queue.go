package p2p

import "sync/atomic"

// reservedQueue is how many bytes may wait for each peer whatever waits for others.
const reservedQueue = 64 << 10

// A queue is frames that wait to be sent to one peer. What is too much is dropped, the oldest first. Its methods are
// called by one goroutine at a time.
type queue struct {
	maxBytes int           // bytes
	shared   *atomic.Int64 // bytes of all peers' queues that are left beyond reservedQueue

	buf      []byte // frames, from begin on
	begin    int
	count    int
	borrowed int64 // of shared
}

// add appends a message and returns how many were dropped for it, or were with it.
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

// take returns all frames, which is the caller's memory from now on, and how many they are.
func (q *queue) take() (frames []byte, n int) {
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

// borrow makes the loan at least n, and no more than that where it was more; false: there is not as much left.
func (q *queue) borrow(n int64) bool {
	n = max(n, 0)
	if left := q.shared.Add(q.borrowed - n); left < 0 && n > q.borrowed {
		q.shared.Add(n - q.borrowed)
		return false
	}
	q.borrowed = n
	return true
}
