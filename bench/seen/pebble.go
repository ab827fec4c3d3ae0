package main

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
)

// A store uses Pebble as a set, with an empty value for each URL.
type store struct {
	db    *pebble.DB
	cache *pebble.Cache
	known int64
	batch map[string]bool
}

func openPebble(cfg config) (database, error) {
	cache := pebble.NewCache(cfg.memory + cfg.n*12/10) // Pebble takes its memory tables from the cache
	opts := &pebble.Options{
		Cache:                       cache,
		DisableWAL:                  true,
		MemTableSize:                uint64(cfg.memory / 4),
		MemTableStopWritesThreshold: 2,
		MaxOpenFiles:                10_000,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      quiet{},
	}
	for i := range opts.Levels {
		opts.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
	}
	db, err := pebble.Open(cfg.dir, opts)
	return &store{db: db, cache: cache, batch: map[string]bool{}}, err
}

type quiet struct{}

func (quiet) Infof(string, ...any)           {}
func (quiet) Errorf(format string, a ...any) { fmt.Printf(format+"\n", a...) }
func (quiet) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }

func (s *store) offer(urls []string) error {
	clear(s.batch)
	b := s.db.NewBatch()
	for _, u := range urls {
		if s.batch[u] {
			continue
		}
		_, closer, err := s.db.Get([]byte(u))
		if err == nil {
			err = closer.Close()
		} else if errors.Is(err, pebble.ErrNotFound) {
			s.batch[u] = true
			s.known++
			err = b.Set([]byte(u), nil, nil)
		}
		if err != nil {
			return err
		}
	}
	return b.Commit(pebble.NoSync)
}

func (s *store) tend() error { return nil }

// busy returns true: Pebble merges most of the time, and checking costs more than an offer.
func (s *store) busy() bool { return true }

func (s *store) finish() error { return s.db.Flush() }

func (s *store) report() error {
	m := s.db.Metrics()
	fmt.Printf("known                     %d\n", s.known)
	fmt.Printf("on disk                   %.1f bytes a URL, %d compactions\n",
		float64(m.DiskSpaceUsage())/float64(s.known), m.Compact.Count)
	fmt.Printf("cache                     %.0f MB\n", float64(s.cache.Size())/(1<<20))
	return nil
}

func (s *store) close() error { return s.db.Close() }
