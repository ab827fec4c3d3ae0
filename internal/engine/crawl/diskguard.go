package crawl

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// A diskGuard blocks workers while the disk has too little free space.
type diskGuard struct {
	minFree uint64
	free    func() (uint64, error)

	full valve // shut while there is too little space

	mu         sync.Mutex // guards the fields below
	reportedAt time.Time  // when the listener was last told of too little space
	lastFree   uint64     // free bytes at the last check
}

const diskReportInterval = time.Minute // interval of reports while space is short

// check checks the free space, and reports changes to the listener.
func (s *diskGuard) check(now time.Time, l Listener) error {
	free, err := s.free()
	if err != nil {
		return fmt.Errorf("check the free disk space: %w", err)
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

// keepChecking checks at intervals, until the context ends.
func (s *diskGuard) keepChecking(ctx context.Context, cfg *Config, l Listener) error {
	if s.minFree == 0 {
		return nil
	}
	return every(ctx, cfg.DiskCheckInterval, func() error { return s.check(cfg.Now(), l) })
}
