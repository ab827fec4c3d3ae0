package hosttable

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// A part is a hash table with the hosts of which the hash begins with the same bits.
type part struct {
	rows  []row
	names []byte // each with its length in front
	// of rows: bits of the hash above, the row's number plus one below; 0: empty. Its length is a power of two, or 0
	index      []uint32
	freeHead   uint32 // the first free row's number plus one; 0: none
	freeCount  int    // how many rows are free
	waste      int    // bytes of names that are gone
	generation uint32 // how often rows have changed their numbers
}

// A row is a host. In a free one name is gone, and since is the next free row's number plus one.
type row struct {
	name         uint32 // where in names
	since        uint32
	owner        uint16
	state, round uint8
}

const freeName = math.MaxUint32

func (p *part) size() int64 {
	return int64(cap(p.rows))*int64(unsafe.Sizeof(row{})) + int64(cap(p.names)) + 4*int64(cap(p.index))
}

// name is a row's name.
func (p *part) name(i uint32) []byte {
	b := p.names[p.rows[i].name:]
	if n := b[0]; n < 0x80 {
		return b[1 : 1+n]
	}
	n, w := binary.Uvarint(b)
	return b[w : w+int(n)]
}

// home is where the search for a name with hash h begins.
func (p *part) home(h uint64) uint32 {
	return uint32(h << partBits >> (64 - bits.Len32(p.mask())))
}

func (p *part) mask() uint32 { return uint32(len(p.index) - 1) }

// find returns where in the index a host is, and its row.
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

// insertIndex puts a row into the index, where there is room.
func (p *part) insertIndex(h uint64, i uint32) {
	mask := p.mask()
	slot := p.home(h)
	for p.index[slot] != 0 {
		slot = (slot + 1) & mask
	}
	p.index[slot] = uint32(h)&^mask | (i + 1)
}

// add adds a host that is not there.
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
			p.reindex(k, n) // has the new row, too
			return
		}
	}
	p.insertIndex(h, i)
}

// appendName adds a name to names.
func (p *part) appendName(host []byte) uint32 {
	p.names = grown(p.names, len(host)+binary.MaxVarintLen32, 64)
	at := uint32(len(p.names))
	p.names = appendBytes(p.names, host)
	return at
}

// grown makes room for n more, by an eighth of what there is: append would take a quarter.
func grown[E any](s []E, n, least int) []E {
	if cap(s)-len(s) >= n {
		return s
	}
	return append(slices.Grow([]E(nil), len(s)+max(n, len(s)/8, least)), s...)
}

// indexFor is how long an index for so many rows is: at most four fifths of it are in use.
func indexFor(rows int) int {
	n := 8
	for n*4/5 < rows {
		n *= 2
	}
	return n
}

// reindex makes an index of the length n.
func (p *part) reindex(k *Key, n int) {
	p.index = make([]uint32, n)
	for i := range uint32(len(p.rows)) {
		if p.rows[i].name != freeName {
			p.insertIndex(k.Sum(p.name(i)), i)
		}
	}
}

// remove removes a row, which lies in a slot of the index.
func (p *part) remove(k *Key, slot, i uint32) {
	p.clearSlot(k, slot)
	n := len(p.name(i))
	p.waste += n + (bits.Len(uint(n|1))+6)/7 // the length's bytes, too
	p.rows[i] = row{name: freeName, since: p.freeHead}
	p.freeHead = i + 1
	p.freeCount++
	if p.waste > len(p.names)/3 || p.freeCount > len(p.rows)/3 {
		p.compact(k)
	}
}

// clearSlot empties a slot of the index. What was put further on because it was taken moves up.
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

// compact leaves out what is free.
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
