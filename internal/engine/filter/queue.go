package filter

import "sync"

// A queue is a queue of calls. Readers wait at ready. A reader that takes a call and leaves others signals the next
// reader.
type queue struct {
	mu    *sync.Mutex
	calls []*call
	ready chan struct{}
}

func newQueue() queue { return queue{mu: new(sync.Mutex), ready: make(chan struct{}, 1)} }

func (q *queue) put(c *call) {
	q.mu.Lock()
	q.calls = append(q.calls, c)
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the next call, nil if there is none.
func (q *queue) dequeue() *call {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.calls) == 0 {
		return nil
	}
	c := q.calls[0]
	q.calls[0] = nil
	if q.calls = q.calls[1:]; len(q.calls) == 0 {
		q.calls = nil
	} else {
		q.signal()
	}
	return c
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.calls) == 0
}
