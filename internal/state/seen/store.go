package seen

import (
	"context"
	"sync"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/tier"
)

// A store is a late merge: parts in memory, and runs on disk.
type store struct {
	parts
	tiers *tier.Set
	busy  sync.Mutex // held during a merge
}

// newStore divides the memory: between two tables, and the sort, which needs 16 bytes per record of at least 110.
func newStore(tiers *tier.Set, memory int64) store {
	if memory <= 0 {
		memory = defaultMemory
	}
	return store{parts: parts{active: mem.New(), full: memory * 7 / 16, freeze: make(chan struct{})}, tiers: tiers}
}

// Close closes the files. Data in memory is not written: the journal has it.
func (s *store) Close() error {
	s.busy.Lock()
	defer s.busy.Unlock()
	return s.tiers.Close()
}

// Position returns the journal position that the disk includes.
func (s *store) Position() uint64 { return s.tiers.Manifest().Position }

// Compact merges files of about the same size into one if there are enough of them, and reports whether there were. It
// may run concurrently with Merge.
func (s *store) Compact(ctx context.Context) (bool, error) { return s.tiers.Compact(ctx) }

// Verify reads the whole disk part, and returns an error for damaged files.
func (s *store) Verify(ctx context.Context) error { return s.tiers.Verify(ctx) }
