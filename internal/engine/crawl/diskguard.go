package crawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A diskGuard holds workers back while the disk has too little room.
type diskGuard struct {
	minFree uint64
	free    func() (uint64, error)

	full valve // shut while there is too little

	mu         sync.Mutex // guards below
	reportedAt time.Time  // when the listener was told last that there is too little
	lastFree   uint64     // bytes, when it was looked last
}

const diskReportInterval = time.Minute // while there is too little room

// check asks the disk, and tells the listener what has changed.
func (s *diskGuard) check(now time.Time, l Listener) error {
	free, err := s.free()
	if err != nil {
		return fmt.Errorf("ask how much room the disk has: %w", err)
	}
	was, short := s.full.shut(), free < s.minFree
	s.full.set(short)
	s.mu.Lock()
	s.lastFree = free
	say := short && (!was || now.Sub(s.reportedAt) >= diskReportInterval)
	if say {
		s.reportedAt = now
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

// keepChecking looks again and again, until the context ends.
func (s *diskGuard) keepChecking(ctx context.Context, cfg *Config, l Listener) error {
	if s.minFree == 0 {
		return nil
	}
	return every(ctx, cfg.DiskCheckInterval, func() error { return s.check(cfg.Now(), l) })
}
