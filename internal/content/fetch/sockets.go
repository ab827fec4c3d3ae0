package fetch

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// sockets are the connections that may be open at once: in use, idle, or being made. Who wants one when there are no
// more has an idle one closed in its place, or waits until one is free. Nil sockets are without limit.
type sockets struct {
	closeOneIdle func() bool  // closes an idle connection, and reports whether there was one
	waiting      atomic.Int32 // how many wait
	free         *semaphore.Weighted
}

func newSockets(n int, spare func() bool) *sockets {
	if n <= 0 {
		return nil
	}
	return &sockets{closeOneIdle: spare, free: semaphore.NewWeighted(int64(n))}
}

// acquire returns when there is a socket for the caller, who gives it back with release.
func (s *sockets) acquire(ctx context.Context) error {
	if s == nil || s.free.TryAcquire(1) {
		return nil
	}
	for s.closeOneIdle() {
		if s.free.TryAcquire(1) {
			return nil
		}
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	for s.closeOneIdle() { // one that became idle just before it was known that somebody waits
		if s.free.TryAcquire(1) {
			return nil
		}
	}
	return s.free.Acquire(ctx, 1)
}

func (s *sockets) release() {
	if s != nil {
		s.free.Release(1)
	}
}

// short reports whether somebody waits for a socket: then none is kept idle.
func (s *sockets) hasWaiters() bool { return s != nil && s.waiting.Load() > 0 }
