package bounded

import (
	"hash/maphash"
	"math/bits"
)

// Counts keeps a number for each of very many names, in 16 bytes a name at most: of a name it has 64 bits of a hash. Of
// ten million names two share them with a probability of three in a million, and nobody outside can choose such names.
type Counts struct {
	seed  maphash.Seed
	parts [countParts]countPart
}

// A countPart is a hash table with open addressing. It grows by an eighth, when it is as full as that leaves it room
// for.
type countPart struct {
	keys   []uint64 // 0: nothing
	values []uint32
	used   int
}

const (
	countParts = 256
	leastPart  = 16
)

// NewCounts makes one in which every name has 0.
func NewCounts() *Counts { return &Counts{seed: maphash.MakeSeed()} }

func (c *Counts) key(name string) uint64 { return max(maphash.String(c.seed, name), 1) }

// Get is a name's number, 0 if it has none.
func (c *Counts) Get(name string) uint32 {
	k := c.key(name)
	p := &c.parts[k%countParts]
	if p.used == 0 {
		return 0
	}
	return p.values[p.find(k)]
}

// Set gives a name another number.
func (c *Counts) Set(name string, n uint32) {
	k := c.key(name)
	p := &c.parts[k%countParts]
	if p.used >= len(p.keys)-len(p.keys)/8 {
		p.grow()
	}
	i := p.find(k)
	if p.keys[i] == 0 {
		p.keys[i] = k
		p.used++
	}
	p.values[i] = n
}

// find returns where a key is, or is to be. There is always a place that is free.
func (p *countPart) find(k uint64) int {
	at, _ := bits.Mul64(k, uint64(len(p.keys)))
	i := int(at)
	for p.keys[i] != k && p.keys[i] != 0 {
		if i++; i == len(p.keys) {
			i = 0
		}
	}
	return i
}

func (p *countPart) grow() {
	n := max(len(p.keys)+len(p.keys)/8, leastPart)
	old := *p
	p.keys, p.values = make([]uint64, n), make([]uint32, n)
	for i, k := range old.keys {
		if k != 0 {
			at := p.find(k)
			p.keys[at], p.values[at] = k, old.values[i]
		}
	}
}
