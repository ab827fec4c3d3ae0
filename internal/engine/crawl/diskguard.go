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

	full valve // shut while there is too little

	mu   sync.Mutex // guards below
	said time.Time  // when the listener was told last that there is too little
	left uint64     // bytes, when it was looked last
}

const sayAgain = time.Minute // while there is too little room

// look asks the disk, and tells the listener what has changed.
func (s *diskGuard) look(now time.Time, l Listener) error {
	free, err := s.free()
	if err != nil {
		return fmt.Errorf("ask how much room the disk has: %w", err)
	}
	was, short := s.full.shut(), free < s.least
	s.full.set(short)
	s.mu.Lock()
	s.left = free
	say := short && (!was || now.Sub(s.said) >= sayAgain)
	if say {
		s.said = now
	}
	s.mu.Unlock()
	switch {
	case say:
		l.Paused(free)
	case was && !short:
		l.Resumed(free)
	}
	return nil
}

// watchSpace looks again and again, until the context ends.
func (s *diskGuard) watchSpace(ctx context.Context, cfg *Config, l Listener) error {
	if s.least == 0 {
		return nil
	}
	return every(ctx, cfg.LookSpace, func() error { return s.look(cfg.Now(), l) })
}
