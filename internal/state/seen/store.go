package seen

import (
	"context"
	"sync"

	"kumo/internal/state/seen/mem"
	"kumo/internal/state/seen/tier"
)

// A store is a late merge: parts in memory, and runs on the disk.
type store struct {
	parts
	tiers *tier.Set
	busy  sync.Mutex // held by a merge
}

// newStore shares out a budget: to two tables, and to the sort that needs 16 bytes a record of 110 at least.
func newStore(tiers *tier.Set, memory int64) store {
	if memory <= 0 {
		memory = defaultMemory
	}
	return store{parts: parts{active: mem.New(), full: memory * 7 / 16, freeze: make(chan struct{})}, tiers: tiers}
}

// Close closes the files. What is only in memory is not written: the journal has it.
func (s *store) Close() error {
	s.busy.Lock()
	defer s.busy.Unlock()
	return s.tiers.Close()
}

// Position is the journal position that the disk includes.
func (s *store) Position() uint64 { return s.tiers.Manifest().Position }

// Compact merges files of about one size into one where there are enough of them, and reports whether there were. It
// may run beside Merge.
func (s *store) Compact(ctx context.Context) (bool, error) { return s.tiers.Compact(ctx) }

// Verify reads all that is on the disk, and returns what of it is not as it was written.
func (s *store) Verify(ctx context.Context) error { return s.tiers.Verify(ctx) }
