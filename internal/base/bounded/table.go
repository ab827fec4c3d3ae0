package bounded

import (
	"hash/maphash"
	"math/bits"
)

// A Table maps many names to small values. It stores a 64-bit hash of each name and its value, in at most 1.3 times
// their size. The probability that two of ten million names share a hash is three in a million. The hash is seeded
// randomly, so nobody else can construct collisions. A Table is not safe for concurrent use.
type Table[V any] struct {
	expired func(V) bool // nil: values never expire
	seed    maphash.Seed
	parts   [tableParts]tablePart[V]
}

// A tablePart is a hash table with open addressing. It grows by an eighth when it is seven eighths full.
type tablePart[V any] struct {
	keys   []uint64 // 0: free
	values []V
	used   int
}

// Counts is a Table of numbers.
type Counts = Table[uint32]

const (
	tableParts = 256
	leastPart  = 16
)

// NewCounts returns a Table in which every name has 0.
func NewCounts() *Counts { return NewTable[uint32](nil) }

// NewTable returns an empty Table. If expired is not nil, the table removes the values for which it returns true before
// it grows.
func NewTable[V any](expired func(V) bool) *Table[V] {
	return &Table[V]{expired: expired, seed: maphash.MakeSeed()}
}

func (t *Table[V]) key(name string) uint64 { return max(maphash.String(t.seed, name), 1) }

// Get returns the value of a name, or the zero value.
func (t *Table[V]) Get(name string) V {
	k := t.key(name)
	p := &t.parts[k%tableParts]
	if p.used == 0 {
		var none V
		return none
	}
	return p.values[p.find(k)]
}

// Set sets the value of a name.
func (t *Table[V]) Set(name string, v V) {
	k := t.key(name)
	p := &t.parts[k%tableParts]
	if p.used >= len(p.keys)-len(p.keys)/8 {
		p.grow(t.expired)
	}
	i := p.find(k)
	if p.keys[i] == 0 {
		p.keys[i] = k
		p.used++
	}
	p.values[i] = v
}

// Each calls f with every value, in no particular order.
func (t *Table[V]) Each(f func(V)) {
	for i := range t.parts {
		for j, k := range t.parts[i].keys {
			if k != 0 {
				f(t.parts[i].values[j])
			}
		}
	}
}

// find returns the slot of a key, or the free slot where it belongs. There is always a free slot.
func (p *tablePart[V]) find(k uint64) int {
	at, _ := bits.Mul64(k, uint64(len(p.keys)))
	i := int(at)
	for p.keys[i] != k && p.keys[i] != 0 {
		if i++; i == len(p.keys) {
			i = 0
		}
	}
	return i
}

// grow removes expired values. If the table is still three quarters full, it also grows by an eighth, to at least
// leastPart slots.
func (p *tablePart[V]) grow(expired func(V) bool) {
	old := *p
	kept := 0
	for i, k := range old.keys {
		if k != 0 && (expired == nil || !expired(old.values[i])) {
			kept++
		} else {
			old.keys[i] = 0
		}
	}
	n := len(old.keys)
	if kept >= n-n/4 {
		n = max(n+n/8, leastPart)
	}
	*p = tablePart[V]{keys: make([]uint64, n), values: make([]V, n), used: kept}
	for i, k := range old.keys {
		if k != 0 {
			at := p.find(k)
			p.keys[at], p.values[at] = k, old.values[i]
		}
	}
}
