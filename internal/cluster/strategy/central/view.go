package central

import (
	"hash/maphash"
	"math/bits"

	"kumo/internal/cluster/strategy"
)

// A view is whose hosts are, as one node knows it: its own, all of them, and of others' those that were asked for not
// long ago.
type view struct {
	self    strategy.Node
	own     *trie
	foreign [2]*trie        // the younger, and the one before
	nodes   []strategy.Node // by number; "" if it is none any more
}

// seed keys the hashes of host names: nobody can choose names that are taken for each other.
var seed = maphash.MakeSeed()

func key(host string) uint64 { return maphash.String(seed, host) }

// Values of own hosts; of others' the value is a node's place in the list of nodes.
const (
	ownParked      uint32 = iota
	ownProvisional        // provisionally: it may yet be another's
	ownGranted
)

// Owner says who owns a host.
func (v *view) Owner(host string) (strategy.Node, strategy.State) {
	k := key(host)
	if value, ok := v.own.get(k); ok {
		if value == ownParked {
			return v.self, strategy.Parked
		}
		return v.self, strategy.Owned
	}
	for _, t := range v.foreign {
		if value, ok := t.get(k); ok && v.nodes[value] != "" {
			return v.nodes[value], strategy.Owned
		}
	}
	return "", strategy.Unknown
}

// A trie maps hashes to values. It does not change: who sets gets another one, which shares most with it (P. Bagwell,
// Ideal Hash Trees, 2001; here with 16 branches a level). A nil trie is empty.
type trie struct {
	branches uint16 // those that are there
	leaves   uint16 // of these, those that are leaves
	children []*trie
	entries  []leaf
}

type leaf struct {
	key   uint64
	value uint32
}

const trieBits = 4

func (t *trie) get(k uint64) (uint32, bool) {
	for shift := 0; t != nil; shift += trieBits {
		bit := uint16(1) << (k >> shift & (1<<trieBits - 1))
		switch {
		case t.leaves&bit != 0:
			if l := t.entries[bits.OnesCount16(t.leaves&(bit-1))]; l.key == k {
				return l.value, true
			}
			return 0, false
		case t.branches&bit == 0:
			return 0, false
		}
		t = t.children[bits.OnesCount16(t.branches&(bit-1))]
	}
	return 0, false
}

// set is the trie with one value more, or another one; added says which.
func (t *trie) set(k uint64, value uint32) (with *trie, added bool) {
	return t.withLeaf(leaf{k, value}, 0)
}

func (t *trie) withLeaf(l leaf, shift int) (*trie, bool) {
	if t == nil {
		t = &trie{}
	}
	c := *t
	bit := uint16(1) << (l.key >> shift & (1<<trieBits - 1))
	at, kid := bits.OnesCount16(t.leaves&(bit-1)), bits.OnesCount16(t.branches&(bit-1))
	switch {
	case t.branches&bit != 0:
		below, added := t.children[kid].withLeaf(l, shift+trieBits)
		c.children = spliced(t.children, kid, 1, below)
		return &c, added
	case t.leaves&bit == 0:
		c.leaves |= bit
		c.entries = spliced(t.entries, at, 0, l)
		return &c, true
	case t.entries[at].key == l.key:
		c.entries = spliced(t.entries, at, 1, l)
		return &c, false
	}
	below, _ := (*trie)(nil).withLeaf(t.entries[at], shift+trieBits)
	below, _ = below.withLeaf(l, shift+trieBits)
	c.leaves &^= bit
	c.branches |= bit
	c.entries = spliced(t.entries, at, 1)
	c.children = spliced(t.children, kid, 0, below)
	return &c, true
}

func (t *trie) without(k uint64) (*trie, bool) { return t.withoutLeaf(k, 0) }

func (t *trie) withoutLeaf(k uint64, shift int) (*trie, bool) {
	if t == nil {
		return nil, false
	}
	bit := uint16(1) << (k >> shift & (1<<trieBits - 1))
	at, kid := bits.OnesCount16(t.leaves&(bit-1)), bits.OnesCount16(t.branches&(bit-1))
	c := *t
	switch {
	case t.leaves&bit != 0 && t.entries[at].key == k:
		c.leaves &^= bit
		c.entries = spliced(t.entries, at, 1)
	case t.branches&bit != 0:
		below, was := t.children[kid].withoutLeaf(k, shift+trieBits)
		if !was {
			return t, false
		}
		if c.children = spliced(t.children, kid, 1, below); below == nil {
			c.branches &^= bit
			c.children = spliced(t.children, kid, 1)
		}
	default:
		return t, false
	}
	if c.branches|c.leaves == 0 {
		return nil, true
	}
	return &c, true
}

// spliced is a copy of a slice in which others stand in the place of n elements.
func spliced[E any](s []E, at, n int, by ...E) []E {
	c := make([]E, 0, len(s)-n+len(by))
	return append(append(append(c, s[:at]...), by...), s[at+n:]...)
}
