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
	window      = 1<<16 - 1 // maximum input of compress: positions and stored blocks have 16 bits
	maxDistance = 1 << 15
	minStored   = 128 // bytes without matches for which a stored block is worth the two extra block heads
	skipShift   = 6   // after 64 bytes without a match, the search skips one byte more per step
)

// An Encoder is the working memory of the compression. The zero value is ready to use. It is not safe for concurrent
// use.
type Encoder struct {
	table [1 << tableBits]uint16 // last position with each hash
	out   []byte
	acc   uint64 // bits not yet in out, the first bit lowest
	n     uint   // number of bits in acc; less than 32 between calls
	head  int    // bit position in out of the last block's head
	open  bool   // the last block has fixed codes and no end yet
}

// Append appends a stream with all parts to dst and returns it. Parts must not overlap dst. Matches are found within a
// part only.
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
	} else if len(e.out) == start { // an empty stream also needs a block
		e.openBlock()
		e.closeBlock()
	}
	e.flush()
	out := e.out
	out[e.head>>3] |= 1 << (e.head & 7) // mark the last block as final
	e.out = nil
	return out
}

// compress compresses at most window bytes. Matches are found within these bytes.
func (e *Encoder) compress(src []byte) {
	clear(e.table[:])
	done := 0 // bytes written
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
		if at+2 <= len(src) { // so that a match may begin within this one
			e.table[hash(binary.LittleEndian.Uint32(src[at-2:]))] = uint16(at - 2)
		}
	}
	e.literals(src[done:])
}

// hash hashes four bytes by multiplication with 2³² divided by the golden ratio (Knuth, TAOCP 3, section 6.4).
func hash(v uint32) uint32 { return v * 0x9e3779b1 >> (32 - tableBits) }

// matchLength returns the length of the common prefix of a and b. b is the shorter one.
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

// literals writes bytes without matches.
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

// match writes a match, split so that each piece has a length that the format allows.
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

// store writes at most window bytes as a stored block.
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

// openBlock begins a block with fixed codes if none is open.
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

// blockHead writes the three bits at the beginning of a block. The final bit is set later.
func (e *Encoder) blockHead(kind uint32) {
	e.head = 8*len(e.out) + int(e.n)
	e.write(code{kind, 3})
}

// write writes up to 18 bits.
func (e *Encoder) write(c code) {
	e.acc |= uint64(c.bits) << e.n
	if e.n += uint(c.n); e.n >= 32 {
		e.out = binary.LittleEndian.AppendUint32(e.out, uint32(e.acc))
		e.acc >>= 32
		e.n -= 32
	}
}

// flush pads the last byte with zeros and writes all bits.
func (e *Encoder) flush() {
	for e.n > 0 {
		e.out = append(e.out, byte(e.acc))
		e.acc >>= 8
		e.n -= min(e.n, 8)
	}
	e.acc = 0
}
