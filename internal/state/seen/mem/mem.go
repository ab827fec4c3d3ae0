// Package mem implements the in-memory part of a late merge: a table of keys that is filled, sorted once and reset.
//
// It is a hash table over an arena of records, where Igloo has a trie. On disk a trie compresses prefixes and is
// sorted; in memory both cost more than they save. A lookup in a radix trie, adaptive or not, follows one pointer after
// the other, and each may be a cache miss. A hash table reads a slot and a record. The memory that a trie saves on
// prefixes goes to nodes, which the garbage collector must scan. And sorted order is needed only once, when the table
// is merged: then the keys are sorted.
//
// A slot has 32 bits of the key's hash, so a table grows without reading its keys, and 32 bits for the position of the
// record. There are 256 tables that grow independently, so no call waits for all of them to grow. The only pointers are
// those to the arena's pieces of 1 MiB, which are reused after Reset.
package mem

import (
	"encoding/binary"
	"hash/maphash"
)

const (
	pieceSize = 1 << 20
	unit      = 8 // bytes; a Ref counts in this unit
	perPiece  = pieceSize / unit
	subs      = 256
	words     = 4
	headLen   = 4 + 4*words
	maxKey    = 1<<24 - 1
)

// A Ref is the position of a record or of a byte string. Zero means none.
type Ref uint32

// A Table holds keys, each with a byte of flags and four words for the caller. It is not safe for concurrent use.
type Table struct {
	seed   maphash.Seed
	subs   [subs]sub
	pieces [][]byte
	marks  [][]uint64 // for each piece, a bitmap of units where records begin
	at     int        // the next free byte, counted over all pieces
	n      int
	slots  int // total of all sub-tables
	order  *Order
}

// New returns an empty table.
func New() *Table {
	return &Table{seed: maphash.MakeSeed(), at: unit} // Ref 0 is reserved
}

// Reset empties the table, but keeps its memory. Slices obtained from it become invalid.
func (t *Table) Reset() {
	for i := range t.subs {
		clear(t.subs[i].slots)
		t.subs[i].n = 0
	}
	for _, m := range t.marks {
		clear(m)
	}
	t.at, t.n, t.order = unit, 0, nil
}

// Len returns the number of keys.
func (t *Table) Len() int { return t.n }

// Bytes returns the memory in use.
func (t *Table) Bytes() int64 { return int64(t.at) + int64(t.at)/(8*unit) + 8*int64(t.slots) }

// Find returns the record of key, 0 if there is none.
func (t *Table) Find(key string) Ref {
	return t.find(key, maphash.String(t.seed, key))
}

// A Search is a key to find, and the record found.
type Search struct {
	Key string
	Ref Ref

	hash, first uint64
}

// FindAll sets the Ref of each search, as Find does. Slots and records are mostly cache misses; with several keys, the
// processor overlaps them.
func (t *Table) FindAll(all []Search) {
	for i := range all {
		one := &all[i]
		one.hash = maphash.String(t.seed, one.Key)
		if s := &t.subs[one.hash>>56]; s.n > 0 {
			one.first = s.slots[uint32(one.hash)&uint32(len(s.slots)-1)] // prefetches the slot
		}
	}
	for i := range all {
		all[i].Ref = t.find(all[i].Key, all[i].hash)
	}
}

func (t *Table) find(key string, h uint64) Ref {
	s := &t.subs[h>>56]
	if s.n == 0 {
		return 0
	}
	mask := uint32(len(s.slots) - 1)
	for i := uint32(h) & mask; s.slots[i] != 0; i = (i + 1) & mask {
		if slot := s.slots[i]; uint32(slot>>32) == uint32(h) && string(t.Key(Ref(slot))) == key {
			return Ref(slot)
		}
	}
	return 0
}

// Add adds key, which must not be in the table, and returns its record: all flags and words 0.
func (t *Table) Add(key string) Ref {
	if len(key) > maxKey {
		panic("mem: a key of more than 16 MiB")
	}
	ref, b := t.alloc(headLen + len(key))
	t.marks[ref/perPiece][ref%perPiece/64] |= 1 << (ref % 64)
	clear(b[:headLen])
	binary.LittleEndian.PutUint32(b, uint32(len(key))<<8)
	copy(b[headLen:], key)
	h := maphash.String(t.seed, key)
	t.slots += t.subs[h>>56].add(uint64(uint32(h))<<32 | uint64(ref))
	t.n++
	return ref
}

// Keep copies b into the arena. The Ref of an empty slice is 0.
func (t *Table) Keep(b []byte) Ref {
	if len(b) == 0 {
		return 0
	}
	ref, to := t.alloc(4 + len(b))
	binary.LittleEndian.PutUint32(to, uint32(len(b)))
	copy(to[4:], b)
	return ref
}

// Kept returns a slice stored by Keep.
func (t *Table) Kept(r Ref) []byte {
	if r == 0 {
		return nil
	}
	b := t.record(r)
	return b[4 : 4+binary.LittleEndian.Uint32(b)]
}

// Key returns a record's key.
func (t *Table) Key(r Ref) []byte {
	b := t.record(r)
	return b[headLen : headLen+binary.LittleEndian.Uint32(b)>>8]
}

// Flags returns a record's flags.
func (t *Table) Flags(r Ref) uint8 { return t.record(r)[0] }

// SetFlags sets a record's flags.
func (t *Table) SetFlags(r Ref, f uint8) { t.record(r)[0] = f }

// Word returns word i of a record.
func (t *Table) Word(r Ref, i int) uint32 { return binary.LittleEndian.Uint32(t.record(r)[4+4*i:]) }

// SetWord sets word i of a record.
func (t *Table) SetWord(r Ref, i int, v uint32) {
	binary.LittleEndian.PutUint32(t.record(r)[4+4*i:], v)
}

func (t *Table) record(r Ref) []byte { return t.pieces[r/perPiece][r%perPiece*unit:] }

// alloc allocates n bytes within one piece. An allocation larger than a piece gets its own, which counts as several.
func (t *Table) alloc(n int) (Ref, []byte) {
	n = (n + unit - 1) / unit * unit
	if left := pieceSize - t.at%pieceSize; n > left {
		t.at += left
	}
	i := t.at / pieceSize
	ref, off := Ref(t.at/unit), t.at%pieceSize
	t.at += n
	for len(t.pieces) < (t.at+pieceSize-1)/pieceSize {
		t.pieces, t.marks = append(t.pieces, nil), append(t.marks, nil)
	}
	if len(t.pieces[i]) < off+n {
		t.pieces[i] = make([]byte, max(n, pieceSize))
	}
	if t.marks[i] == nil {
		t.marks[i] = make([]uint64, perPiece/64)
	}
	return ref, t.pieces[i][off : off+n]
}
