package weburl

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A Set is a set of strings of which it keeps 64 bits of a hash each: some 13 bytes an entry, whatever the length. The
// hash is keyed anew in each process, so nobody can choose strings that collide; that one of n entries is taken for a
// string that was never added has a chance of n in 2^64. Its methods may be called by many goroutines at once, and Has
// never waits.
type Set struct {
	seed   maphash.Seed
	shards [256]setShard // each grows by itself, so that no growth needs much memory at once
}

type setShard struct {
	slots atomic.Pointer[[]atomic.Uint64] // open addressing; 0 is free
	mu    sync.Mutex                      // held by who adds; guards used
	used  int
}

// NewSet returns an empty set.
func NewSet() *Set { return &Set{seed: maphash.MakeSeed()} }

// Add adds s, and reports whether it was missing.
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
		return false // somebody else has added it since
	}
	shard.used++
	return true
}

// Has reports whether s was added.
func (t *Set) Has(s string) bool {
	shard, key := t.find(s)
	return shard.has(key)
}

// Len is the number of strings that were added.
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

// grow publishes a larger copy, so that who reads the old one meanwhile misses nothing that was added before.
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

// insert puts a key into the first free slot, unless it is there.
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

// startSlot is where the search for a key begins among n slots.
func startSlot(key uint64, n int) int {
	hi, _ := bits.Mul64(key, uint64(n))
	return int(hi)
}
