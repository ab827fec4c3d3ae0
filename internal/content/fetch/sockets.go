package fetch

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// sockets are the connections that may be open at once: in use, idle, or being made. Who wants one when there are no
// more has an idle one closed in its place, or waits until one is free. Nil sockets are without limit.
type sockets struct {
	spare  func() bool  // closes an idle connection, and reports whether there was one
	wanted atomic.Int32 // how many wait

	mu      sync.Mutex
	free    int
	waiting []chan struct{}
}

func newSockets(n int, spare func() bool) *sockets {
	if n <= 0 {
		return nil
	}
	return &sockets{spare: spare, free: n}
}

// acquire returns when there is a socket for the caller, who gives it back with release.
func (s *sockets) acquire(ctx context.Context) error {
	if s == nil || s.try() {
		return nil
	}
	for s.spare() {
		if s.try() {
			return nil
		}
	}
	turn := s.queue()
	s.spare() // one that became idle just before it was known that somebody waits
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	if !s.leave(turn) { // it was given one meanwhile
		s.release()
	}
	return ctx.Err()
}

func (s *sockets) try() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free == 0 {
		return false
	}
	s.free--
	return true
}

// queue is closed when it is the caller's turn.
func (s *sockets) queue() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := make(chan struct{})
	if s.free > 0 {
		s.free--
		close(turn)
		return turn
	}
	s.waiting = append(s.waiting, turn)
	s.wanted.Add(1)
	return turn
}

// leave ends a wait. It reports false if the turn has come.
func (s *sockets) leave(turn <-chan struct{}) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.waiting, func(w chan struct{}) bool { return w == turn })
	if i < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	s.wanted.Add(-1)
	return true
}

func (s *sockets) release() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.free++
		return
	}
	close(s.waiting[0])
	s.waiting = slices.Delete(s.waiting, 0, 1)
	s.wanted.Add(-1)
}

// short reports whether somebody waits for a socket: then none is kept idle.
func (s *sockets) short() bool { return s != nil && s.wanted.Load() > 0 }
