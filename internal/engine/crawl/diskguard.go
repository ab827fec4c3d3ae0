package crawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A diskGuard holds workers back while the disk has too little room.
type diskGuard struct {
	least uint64
	free  func() (uint64, error)

	mu   sync.Mutex
	wait chan struct{} // closed when there is room again; nil while there is
	said time.Time     // when the listener was told last that there is too little
	left uint64        // bytes, when it was looked last
}

const sayAgain = time.Minute // while there is too little room

// look asks the disk, and tells the listener what has changed.
func (s *diskGuard) look(now time.Time, l Listener) error {
	free, err := s.free()
	if err != nil {
		return fmt.Errorf("ask how much room the disk has: %w", err)
	}
	s.mu.Lock()
	s.left = free
	was := s.wait
	switch {
	case free < s.least && was == nil:
		s.wait = make(chan struct{})
	case free >= s.least && was != nil:
		close(was)
		s.wait = nil
	}
	short := s.wait != nil
	say := short && (was == nil || now.Sub(s.said) >= sayAgain)
	if say {
		s.said = now
	}
	s.mu.Unlock()
	switch {
	case say:
		l.Paused(free)
	case was != nil && !short:
		l.Resumed(free)
	}
	return nil
}

// full is closed when there is room again; nil while there is.
func (s *diskGuard) full() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wait
}

// short reports whether there is too little room.
func (s *diskGuard) short() bool { return s.full() != nil }

// await waits until there is room, or the context ends.
func (s *diskGuard) await(ctx context.Context) {
	wait := s.full()
	if wait == nil {
		return
	}
	select {
	case <-wait:
	case <-ctx.Done():
	}
}

// watchSpace looks again and again, until the context ends.
func (s *diskGuard) watchSpace(ctx context.Context, cfg *Config, l Listener) error {
	if s.least == 0 {
		return nil
	}
	return every(ctx, cfg.LookSpace, func() error { return s.look(cfg.Now(), l) })
}
