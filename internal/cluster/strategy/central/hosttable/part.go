package hosttable

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// A part is a hash table of the hosts whose hashes begin with the same bits.
type part struct {
	rows  []row
	names []byte // each preceded by its length
	// of rows: an entry has the row's number plus one in its low bits, and bits of the hash above; 0: empty. Its length
	// is a power of two, or 0
	index      []uint32
	freeHead   uint32 // number of the first free row plus one; 0: none
	freeCount  int    // free rows
	waste      int    // bytes of deleted names
	generation uint32 // changes when rows are renumbered
}

// A row is a host. In a free row, name is freeName, and since is the number of the next free row plus one.
type row struct {
	name         uint32 // offset in names
	since        uint32
	owner        uint16
	state, round uint8
}

const freeName = math.MaxUint32

func (p *part) size() int64 {
	return int64(cap(p.rows))*int64(unsafe.Sizeof(row{})) + int64(cap(p.names)) + 4*int64(cap(p.index))
}

// name returns a row's name.
func (p *part) name(i uint32) []byte {
	b := p.names[p.rows[i].name:]
	if n := b[0]; n < 0x80 {
		return b[1 : 1+n]
	}
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)]
}

// home returns the slot at which the search for a name with hash h starts.
func (p *part) home(h uint64) uint32 {
	return uint32(h << partBits >> (64 - bits.Len32(p.mask())))
}

func (p *part) mask() uint32 { return uint32(len(p.index) - 1) }

// find returns a host's slot in the index, and its row.
func (p *part) find(h uint64, host []byte) (slot, i uint32, ok bool) {
	if len(p.index) == 0 {
		return 0, 0, false
	}
	mask := p.mask()
	for slot = p.home(h); ; slot = (slot + 1) & mask {
		x := p.index[slot]
		if x == 0 {
			return 0, 0, false
		}
		if (x^uint32(h))&^mask == 0 && bytes.Equal(p.name(x&mask-1), host) {
			return slot, x&mask - 1, true
		}
	}
}

// insertIndex adds a row to the index, which must have room.
func (p *part) insertIndex(h uint64, i uint32) {
	mask := p.mask()
	slot := p.home(h)
	for p.index[slot] != 0 {
		slot = (slot + 1) & mask
	}
	p.index[slot] = uint32(h)&^mask | (i + 1)
}

// add adds a host that is not in the part.
func (p *part) add(k *Key, h uint64, host []byte, r row) {
	r.name = p.appendName(host)
	i := p.freeHead - 1
	if p.freeHead != 0 {
		p.freeHead = p.rows[i].since
		p.freeCount--
		p.rows[i] = r
	} else {
		i = uint32(len(p.rows))
		p.rows = append(grown(p.rows, 1, 8), r)
		if n := indexFor(len(p.rows)); n > len(p.index) {
			p.reindex(k, n) // includes the new row
			return
		}
	}
	p.insertIndex(h, i)
}

// appendName appends a name to names, and returns its offset.
func (p *part) appendName(host []byte) uint32 {
	p.names = grown(p.names, len(host)+binary.MaxVarintLen32, 64)
	at := uint32(len(p.names))
	p.names = appendBytes(p.names, host)
	return at
}

// grown returns s with room for n more elements. It grows by an eighth, where append would grow by a quarter.
func grown[E any](s []E, n, least int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(slices.Grow([]E(nil), len(s)+max(n, len(s)/8, least)), s...)
}

// indexFor returns the length of an index for a number of rows, which uses at most four fifths of it.
func indexFor(rows int) int {
	n := 8
	for n*4/5 < rows {
		n *= 2
	}
	return n
}

// reindex rebuilds the index with length n.
func (p *part) reindex(k *Key, n int) {
	p.index = make([]uint32, n)
	for i := range uint32(len(p.rows)) {
		if p.rows[i].name != freeName {
			p.insertIndex(k.Sum(p.name(i)), i)
		}
	}
}

// remove removes a row, given with its slot in the index.
func (p *part) remove(k *Key, slot, i uint32) {
	p.clearSlot(k, slot)
	n := len(p.name(i))
	p.waste += n + (bits.Len(uint(n|1))+6)/7 // with the bytes of the length
	p.rows[i] = row{name: freeName, since: p.freeHead}
	p.freeHead = i + 1
	p.freeCount++
	if p.waste > len(p.names)/3 || p.freeCount > len(p.rows)/3 {
		p.compact(k)
	}
}

// clearSlot clears a slot of the index. Entries that were displaced because it was taken move up.
func (p *part) clearSlot(k *Key, slot uint32) {
	mask := p.mask()
	for at := slot; ; {
		at = (at + 1) & mask
		x := p.index[at]
		if x == 0 {
			break
		}
		if home := p.home(k.Sum(p.name(x&mask - 1))); (at-home)&mask >= (at-slot)&mask {
			p.index[slot] = x
			slot = at
		}
	}
	p.index[slot] = 0
}

// compact removes free rows and unused name bytes.
func (p *part) compact(k *Key) {
	old := *p
	*p = part{generation: old.generation + 1}
	left := len(old.rows) - old.freeCount
	if left == 0 {
		return
	}
	p.rows = slices.Grow(p.rows, left+left/16)
	p.names = slices.Grow(p.names, len(old.names)-old.waste)
	for i, r := range old.rows {
		if r.name != freeName {
			name := old.name(uint32(i))
			r.name = uint32(len(p.names))
			p.names = appendBytes(p.names, name)
			p.rows = append(p.rows, r)
		}
	}
	p.reindex(k, indexFor(left))
}
