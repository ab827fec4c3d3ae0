// Package deflate compresses small texts and already compressed data to DEFLATE streams (RFC 1951) at low cost.
//
// It finds repetitions with a small hash table and writes them in the fixed code. So it neither counts symbols nor
// builds codes, which is most of the work for a text of a few kilobytes. Longer stretches without repetitions are
// stored, since the fixed code does not shorten literals.
//
// A text whose letters alone would shrink in a code of its own becomes larger than with other compressors, by some 15 %
// at 1 KB and 25 % at 20 KB. docs/decisions/deflate.md compares the package with libraries.
package deflate

import (
	"encoding/binary"
	"math/bits"
)

const (
	tableBits   = 11
	window      = 1<<16 - 1 // bytes that positions in the table can tell apart, and that a stored block can have
	maxDistance = 1 << 15
	minStored   = 128 // bytes without repetition from which on storing them is worth another two blocks' heads
	skipShift   = 6   // the search goes faster by a byte a step for each 64 in vain
)

// An Encoder is the memory that compressing needs. Its zero value is ready; it is for one goroutine at a time.
type Encoder struct {
	table [1 << tableBits]uint16 // the last place in the window of each hash
	out   []byte
	acc   uint64 // bits that are not yet in out, the first one lowest
	n     uint   // how many: less than 32 between any two calls
	head  int    // the place in out, in bits, of the last block's head
	open  bool   // whether that is a block of codes without its end
}

// Append appends to dst the stream of all parts, which may not overlap it, and returns it. Repetitions are found within
// a part.
func (e *Encoder) Append(dst []byte, parts ...[]byte) []byte {
	e.out, e.acc, e.n, e.open = dst, 0, 0, false
	start := len(dst)
	for _, part := range parts {
		for len(part) > 0 {
			n := min(len(part), window)
			e.compress(part[:n])
			part = part[n:]
		}
	}
	if e.open {
		e.closeBlock()
	} else if len(e.out) == start { // even nothing is a block
		e.openBlock()
		e.closeBlock()
	}
	e.flush()
	out := e.out
	out[e.head>>3] |= 1 << (e.head & 7) // this block is the last
	e.out = nil
	return out
}

// compress writes at most a window, in which all repetitions are looked for.
func (e *Encoder) compress(src []byte) {
	clear(e.table[:])
	done := 0 // bytes that are written
	for at := 1; at+minMatch <= len(src); {
		v := binary.LittleEndian.Uint32(src[at:])
		slot := &e.table[hash(v)]
		from := int(*slot)
		*slot = uint16(at)
		if at-from > maxDistance || binary.LittleEndian.Uint32(src[from:]) != v {
			at += 1 + (at-done)>>skipShift
			continue
		}
		for from > 0 && at > done && src[from-1] == src[at-1] {
			from--
			at--
		}
		length := minMatch + matchLength(src[from+minMatch:], src[at+minMatch:])
		e.literals(src[done:at])
		e.match(length, at-from)
		at += length
		done = at
		if at+2 <= len(src) { // the next repetition may begin within this one
			e.table[hash(binary.LittleEndian.Uint32(src[at-2:]))] = uint16(at - 2)
		}
	}
	e.literals(src[done:])
}

// hash takes four bytes. It multiplies by 2³² divided by the golden ratio, as Knuth has it (TAOCP 3, section 6.4).
func hash(v uint32) uint32 { return v * 0x9e3779b1 >> (32 - tableBits) }

// matchLength is the number of bytes in which b, the shorter one, begins like a.
func matchLength(a, b []byte) int {
	n := 0
	for ; n+8 <= len(b); n += 8 {
		if x := binary.LittleEndian.Uint64(a[n:]) ^ binary.LittleEndian.Uint64(b[n:]); x != 0 {
			return n + bits.TrailingZeros64(x)/8
		}
	}
	for n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// literals writes a run without repetitions.
func (e *Encoder) literals(run []byte) {
	if len(run) >= minStored {
		e.store(run)
		return
	}
	if len(run) == 0 {
		return
	}
	e.openBlock()
	out, acc, n := e.out, e.acc, e.n
	for _, b := range run {
		c := literals[b]
		acc |= uint64(c.bits) << n
		if n += uint(c.n); n >= 48 {
			out = binary.LittleEndian.AppendUint32(out, uint32(acc))
			out = append(out, byte(acc>>32), byte(acc>>40))
			acc >>= 48
			n -= 48
		}
	}
	if n >= 32 {
		out = binary.LittleEndian.AppendUint32(out, uint32(acc))
		acc >>= 32
		n -= 32
	}
	e.out, e.acc, e.n = out, acc, n
}

// match writes a repetition, in parts that leave no rest shorter than the format allows.
func (e *Encoder) match(length, distance int) {
	e.openBlock()
	d := distanceCode(distance)
	for length > 0 {
		part := min(length, maxMatch)
		if rest := length - part; 0 < rest && rest < minMatch {
			part -= minMatch
		}
		length -= part
		e.write(lengths[part])
		e.write(d)
	}
}

// store writes a run of at most a window as it is.
func (e *Encoder) store(run []byte) {
	if e.open {
		e.closeBlock()
	}
	e.blockHead(0b000)
	e.flush()
	e.out = binary.LittleEndian.AppendUint16(e.out, uint16(len(run)))
	e.out = binary.LittleEndian.AppendUint16(e.out, ^uint16(len(run)))
	e.out = append(e.out, run...)
}

// openBlock begins a block of codes if none is open.
func (e *Encoder) openBlock() {
	if !e.open {
		e.blockHead(0b010)
		e.open = true
	}
}

func (e *Encoder) closeBlock() {
	e.write(symbol(256))
	e.open = false
}

// blockHead writes the three bits of a block that is not the last, as far as it is known.
func (e *Encoder) blockHead(kind uint32) {
	e.head = 8*len(e.out) + int(e.n)
	e.write(code{kind, 3})
}

// write takes up to 18 bits.
func (e *Encoder) write(c code) {
	e.acc |= uint64(c.bits) << e.n
	if e.n += uint(c.n); e.n >= 32 {
		e.out = binary.LittleEndian.AppendUint32(e.out, uint32(e.acc))
		e.acc >>= 32
		e.n -= 32
	}
}

// flush fills the last byte with zeros and leaves no bits over.
func (e *Encoder) flush() {
	for e.n > 0 {
		e.out = append(e.out, byte(e.acc))
		e.acc >>= 8
		e.n -= min(e.n, 8)
	}
	e.acc = 0
}
