package bounded

import (
	"hash/maphash"
	"math/bits"
)

// A Table holds a small value for each of very many names. It stores 64 bits of a name's hash and the value, at most
// 1.3 times their size for each name. Of ten million names two share a hash with a probability of three in a million,
// and nobody outside can choose such names. A Table is not safe for concurrent use.
type Table[V any] struct {
	expired func(V) bool // nil: values are kept
	seed    maphash.Seed
	parts   [tableParts]tablePart[V]
}

// A tablePart is a hash table with open addressing. It grows by an eighth, when it is as full as that leaves it room
// for.
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

// NewTable returns an empty Table. Where expired is not nil, the table drops the values for which it is true before it
// grows.
func NewTable[V any](expired func(V) bool) *Table[V] {
	return &Table[V]{expired: expired, seed: maphash.MakeSeed()}
}

func (t *Table[V]) key(name string) uint64 { return max(maphash.String(t.seed, name), 1) }

// Get returns a name's value, the zero value if it has none.
func (t *Table[V]) Get(name string) V {
	k := t.key(name)
	p := &t.parts[k%tableParts]
	if p.used == 0 {
		var none V
		return none
	}
	return p.values[p.find(k)]
}

// Set replaces a name's value.
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

// Each calls f with every value, in no order.
func (t *Table[V]) Each(f func(V)) {
	for i := range t.parts {
		for j, k := range t.parts[i].keys {
			if k != 0 {
				f(t.parts[i].values[j])
			}
		}
	}
}

// find returns the index of a key, or the free one where it belongs. There is always a free one.
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

// grow makes room for an eighth more than is used, leastPart at least.
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
