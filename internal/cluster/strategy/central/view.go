package central

import (
	"hash/maphash"
	"math/bits"

	"kumo/internal/cluster/strategy"
)

// A view is a snapshot of the host owners that a node knows: its own hosts, and other nodes' hosts that it requested
// lately.
type view struct {
	self    strategy.Node
	own     *trie
	foreign [2]*trie        // the young generation and the old one
	nodes   []strategy.Node // by number; "" if departed
}

// seed keys the hashes of host names, so that nobody can construct collisions.
var seed = maphash.MakeSeed()

func key(host string) uint64 { return maphash.String(seed, host) }

// Values of this node's own hosts. For other nodes' hosts the value is an index into nodes.
const (
	ownParked      uint32 = iota
	ownProvisional        // provisional: another node may still get the host
	ownGranted
)

// Owner returns the owner of a host.
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

// A trie is an immutable map from hashes to values. A change returns a new trie that shares most nodes with the old one
// (P. Bagwell, Ideal Hash Trees, 2001; here with 16 branches per level). A nil trie is empty.
type trie struct {
	branches uint16 // bit set of the children present
	leaves   uint16 // bit set of the entries present
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

// set returns the trie with a value set; added reports whether the key is new.
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

// spliced returns a copy of a slice with n elements at index at replaced by others.
func spliced[E any](s []E, at, n int, by ...E) []E {
	c := make([]E, 0, len(s)-n+len(by))
	return append(append(append(c, s[:at]...), by...), s[at+n:]...)
}
