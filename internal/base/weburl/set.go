package weburl

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A Set is a set of strings. It stores a 64-bit hash of each, about 13 bytes per entry. The hash key is random in each
// process, so nobody can construct collisions. With n entries, a string that was never added is reported as present
// with probability n/2^64. A Set is safe for concurrent use, and Has never blocks.
type Set struct {
	seed   maphash.Seed
	shards [256]setShard // shards grow separately, so that no growth takes much memory at once
}

type setShard struct {
	slots atomic.Pointer[[]atomic.Uint64] // open addressing; 0 means free
	mu    sync.Mutex                      // held while adding; guards used
	used  int
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{seed: maphash.MakeSeed()} }

// Add adds s, and reports whether it was not present.
func (t *Set) Add(s string) bool {
	shard, key := t.find(s)
	if shard.has(key) {
		return false
	}
	shard.mu.Lock()
	defer shard.mu.Unlock()
	slots := shard.slots.Load()
	if slots == nil || 4*(shard.used+1) > 3*len(*slots) {
		slots = shard.grow(slots)
	}
	if !insert(*slots, key) {
		return false // another goroutine has added it
	}
	shard.used++
	return true
}

// Has reports whether s was added.
func (t *Set) Has(s string) bool {
	shard, key := t.find(s)
	return shard.has(key)
}

// Len returns the number of strings.
func (t *Set) Len() (n int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += s.used
		s.mu.Unlock()
	}
	return n
}

func (t *Set) find(s string) (*setShard, uint64) {
	h := maphash.String(t.seed, s)
	return &t.shards[h>>56], max(h<<8, 1)
}

func (s *setShard) has(key uint64) bool {
	slots := s.slots.Load()
	if slots == nil {
		return false
	}
	for i := startSlot(key, len(*slots)); ; i++ {
		if i == len(*slots) {
			i = 0
		}
		switch (*slots)[i].Load() {
		case key:
			return true
		case 0:
			return false
		}
	}
}

// grow publishes a larger copy of the table. Concurrent readers of the old table miss only keys added later.
func (s *setShard) grow(old *[]atomic.Uint64) *[]atomic.Uint64 {
	if old == nil {
		old = new([]atomic.Uint64)
	}
	larger := make([]atomic.Uint64, 4+len(*old)*3/2)
	for i := range *old {
		if key := (*old)[i].Load(); key != 0 {
			insert(larger, key)
		}
	}
	s.slots.Store(&larger)
	return &larger
}

// insert adds a key, and reports whether it was not present.
func insert(slots []atomic.Uint64, key uint64) bool {
	for i := startSlot(key, len(slots)); ; i++ {
		if i == len(slots) {
			i = 0
		}
		switch slots[i].Load() {
		case key:
			return false
		case 0:
			slots[i].Store(key)
			return true
		}
	}
}

// startSlot returns the first slot to search for a key in a table of n slots.
func startSlot(key uint64, n int) int {
	hi, _ := bits.Mul64(key, uint64(n))
	return int(hi)
}
