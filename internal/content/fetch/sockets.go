package fetch

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// sockets limit the open connections: in use, idle, or being opened. If none is free, acquire closes an idle connection
// or waits. Nil sockets have no limit.
type sockets struct {
	closeOneIdle func() bool  // closes an idle connection; false if there is none
	waiting      atomic.Int32 // number of waiters
	free         *semaphore.Weighted
}

func newSockets(n int, spare func() bool) *sockets {
	if n <= 0 {
		return nil
	}
	return &sockets{closeOneIdle: spare, free: semaphore.NewWeighted(int64(n))}
}

// acquire waits for a socket. The caller returns it with release.
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
	for s.closeOneIdle() { // a connection may have become idle before this waiter was visible
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

// hasWaiters reports whether a caller waits for a socket. Then no connection is kept idle.
func (s *sockets) hasWaiters() bool { return s != nil && s.waiting.Load() > 0 }
