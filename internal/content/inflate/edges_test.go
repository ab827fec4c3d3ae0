package inflate

import (
	"bytes"
	"io"
	"math/bits"
	"strings"
)

// A bitWriter writes streams bit by bit.
type bitWriter struct {
	b    []byte
	free int // bits of the last byte
}

// put appends the n lowest bits of v, the lowest first.
func (w *bitWriter) put(v uint64, n int) *bitWriter {
	for ; n > 0; n-- {
		if w.free == 0 {
			w.b, w.free = append(w.b, 0), 8
		}
		w.b[len(w.b)-1] |= byte(v&1) << (8 - w.free)
		w.free--
		v >>= 1
	}
	return w
}

// code appends a Huffman code, the highest bit first.
func (w *bitWriter) code(v uint64, n int) *bitWriter { return w.put(bits.Reverse64(v)>>(64-n), n) }

func (w *bitWriter) stored(final uint64, text string) *bitWriter {
	w.put(final, 1).put(0, 2)
	w.free = 0
	n := len(text)
	w.b = append(w.b, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
	w.b = append(w.b, text...)
	return w
}

// lit appends a symbol of the fixed code.
func (w *bitWriter) lit(sym uint64) *bitWriter {
	switch {
	case sym < 144:
		return w.code(0x30+sym, 8)
	case sym < 256:
		return w.code(0x190+sym-144, 9)
	case sym < 280:
		return w.code(sym-256, 7)
	}
	return w.code(0xc0+sym-280, 8)
}

// trees begins a dynamic block with code lengths, each written in 4 bits: the code for lengths has the 16 symbols that
// are lengths.
func (w *bitWriter) trees(final uint64, lits, dists []uint8) *bitWriter {
	w.put(final, 1).put(2, 2).put(uint64(len(lits)-257), 5).put(uint64(len(dists)-1), 5).put(15, 4)
	for _, sym := range preOrder {
		if sym < 16 {
			w.put(4, 3)
		} else {
			w.put(0, 3)
		}
	}
	for _, n := range append(bytes.Clone(lits), dists...) {
		w.code(uint64(n), 4)
	}
	return w
}

func (w *bitWriter) fixed(final uint64) *bitWriter { return w.put(final, 1).put(1, 2) }

// match appends length and distance symbols of the fixed code with their extra bits.
func (w *bitWriter) match(lenSym, lenExtra uint64, lenBits int, distSym, distExtra uint64, distBits int) *bitWriter {
	return w.lit(lenSym).put(lenExtra, lenBits).code(distSym, 5).put(distExtra, distBits)
}

// matchOf returns a match of the fixed code.
func (w *bitWriter) matchOf(length, distance int) *bitWriter {
	for sym := 285; ; sym-- {
		e := litMeaning[sym]
		if least := int(e >> valueShift); least <= length {
			w.lit(uint64(sym)).put(uint64(length-least), int(e&takesMask))
			break
		}
	}
	for sym := numDist - 1; ; sym-- {
		e := distMeaning[sym]
		if least := int(e >> valueShift); least <= distance {
			return w.code(uint64(sym), 5).put(uint64(distance-least), int(e&takesMask))
		}
	}
}

type edge struct {
	name   string
	stream []byte
	want   string
	err    error
}

// lengthsOf returns a list of n code lengths from pairs of symbol and length.
func lengthsOf(n int, pairs ...int) []uint8 {
	lens := make([]uint8, n)
	for i := 0; i < len(pairs); i += 2 {
		lens[pairs[i]] = uint8(pairs[i+1])
	}
	return lens
}

// canonical returns the codes for these lengths (RFC 1951, section 3.2.2).
func canonical(lens []uint8) []uint64 {
	codes := make([]uint64, len(lens))
	code := uint64(0)
	for n := uint8(1); n <= maxCode; n++ {
		for sym := range lens {
			if lens[sym] == n {
				codes[sym] = code
				code++
			}
		}
		code <<= 1
	}
	return codes
}

// syms appends symbols of a code.
func (w *bitWriter) syms(lens []uint8, syms ...int) *bitWriter {
	codes := canonical(lens)
	for _, s := range syms {
		w.code(codes[s], int(lens[s]))
	}
	return w
}

func stream() *bitWriter { return new(bitWriter) }

func edges() []edge {
	tiny := lengthsOf(258, 'a', 1, 256, 2, 257, 2) // 257 is a match of 3
	long, far := ladder(286, 'a', 14), ladder(30, 0, 14)
	long[256], long[285], far[14], far[15] = 15, 15, 15, 15
	deep := stream().trees(1, long, far).syms(long, 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l', 'm', 'n')
	deep.syms(long, 285).syms(far, 0)                             // 1 back
	deep.syms(long, 285).syms(far, 14).put(3, 6)                  // 129+3 back
	deep.syms(long, 285).syms(far, 15).put(63, 6).syms(long, 256) // 193+63 back
	deepText := "abcdefghijklmn" + strings.Repeat("n", 3*258)

	window := strings.Repeat("0123456789abcdef", 1<<11)
	farthest := func(text string) []byte {
		return stream().stored(0, text[:len(text)/2]).stored(0, text[len(text)/2:]).fixed(1).match(257, 0, 0, 29, 8191,
			13).lit(256).b
	}
	return []edge{
		{"nothing", nil, "", io.ErrUnexpectedEOF},
		{"stored", stream().stored(1, "hello").b, "hello", nil},
		{"stored, empty, stored", stream().stored(0, "a").stored(0, "").stored(1, "b").b, "ab", nil},
		{"stored and cut", stream().stored(1, "hello").b[:8], "hel", io.ErrUnexpectedEOF},
		{"stored and cut in its length", stream().stored(1, "hello").b[:3], "", io.ErrUnexpectedEOF},
		{"stored, lengths that differ", []byte{1, 1, 0, 0xff, 0xff, 'a'}, "", ErrCorrupt},
		{"stored between bits", stream().fixed(0).lit('a').lit(256).stored(0, "b").fixed(1).lit('c').lit(256).b, "abc", nil},
		{"no such kind of block", stream().stored(0, "a").put(1, 1).put(3, 2).put(0, 64).b, "a", ErrCorrupt},
		{"no final block", stream().fixed(0).lit('a').lit(256).b, "a", io.ErrUnexpectedEOF},
		{"fixed, empty", stream().fixed(1).lit(256).b, "", nil},
		{"fixed, all lengths of code", stream().fixed(1).lit(0).lit(143).lit(144).lit(255).lit(256).b, "\x00\x8f\x90\xff",
			nil},
		{"distance 1", stream().fixed(1).lit('a').match(257, 0, 0, 0, 0, 0).lit(256).b, "aaaa", nil},
		{"length 258", stream().fixed(1).lit('a').match(285, 0, 0, 0, 0, 0).lit(256).b, strings.Repeat("a", 259), nil},
		{"length 258 the other way", stream().fixed(1).lit('a').match(284, 31, 5, 0, 0, 0).lit(256).b,
			strings.Repeat("a", 259), nil},
		{"distance 32768", farthest(window), window + "012", nil},
		{"distance 32768 of 32767", farthest(window[1:]), window[1:], ErrCorrupt},
		{"distance 32768 of 32769", farthest("x" + window), "x" + window + "012", nil},
		{"distance beyond the begin", stream().fixed(1).lit('a').match(257, 0, 0, 1, 0, 0).lit(256).put(0, 200).b, "a",
			ErrCorrupt},
		{"no such length", stream().fixed(1).lit('a').lit(286).put(0, 200).b, "a", ErrCorrupt},
		{"no such distance", stream().fixed(1).lit('a').lit(257).code(30, 5).put(0, 200).b, "a", ErrCorrupt},
		{"one distance", stream().trees(1, tiny, []uint8{1}).syms(tiny, 'a', 257).put(0, 1).syms(tiny, 256).b, "aaaa", nil},
		{"one distance, the other bit", stream().trees(1, tiny, []uint8{1}).syms(tiny, 'a', 257).put(1, 1).put(0, 200).b, "a",
			ErrCorrupt},
		{"no distance", stream().trees(1, tiny, []uint8{0}).syms(tiny, 'a', 'a', 256).b, "aa", nil},
		{"no distance, but used", stream().trees(1, tiny, []uint8{0}).syms(tiny, 'a', 257).put(0, 200).b, "a", ErrCorrupt},
		{"only an end", stream().trees(1, lengthsOf(257, 256, 1), []uint8{0}).put(0, 1).b, "", nil},
		{"no end", stream().trees(1, lengthsOf(257, 'a', 1, 'b', 1), []uint8{0}).put(0b10, 2).b, "abaaaa",
			io.ErrUnexpectedEOF},
		{"no symbol", stream().trees(1, lengthsOf(257), []uint8{1, 1}).put(0, 200).b, "", ErrCorrupt},
		{"too many codes", stream().trees(1, lengthsOf(257, 'a', 1, 'b', 1, 256, 1), []uint8{0}).put(0, 200).b, "",
			ErrCorrupt},
		{"too few codes", stream().trees(1, lengthsOf(257, 'a', 2, 256, 2), []uint8{0}).put(0, 200).b, "", ErrCorrupt},
		{"too many distances", stream().trees(1, tiny, []uint8{1, 1, 1}).put(0, 200).b, "", ErrCorrupt},
		{"too few distances", stream().trees(1, tiny, []uint8{2}).put(0, 200).b, "", ErrCorrupt},
		{"287 symbols", stream().put(1, 1).put(2, 2).put(30, 5).put(0, 200).b, "", ErrCorrupt},
		{"31 distances", stream().put(1, 1).put(2, 2).put(0, 5).put(30, 5).put(0, 200).b, "", ErrCorrupt},
		{"repetition of nothing", stream().put(1, 1).put(2, 2).put(0, 14).put(1, 3).put(0, 6).put(1, 3).put(1, 1).put(0,
			200).b, "", ErrCorrupt},
		{"repetition beyond the end", stream().put(1, 1).put(2, 2).put(0, 14).put(0, 6).put(1, 3).put(1, 3).put(^uint64(0),
			64).b, "", ErrCorrupt},
		{"codes of 15 bits", deep.b, deepText, nil},
	}
}

// ladder returns the lengths 1, 2, 3 and so on for the symbols from first on.
func ladder(n, first, rungs int) []uint8 {
	lens := make([]uint8, n)
	for i := range rungs {
		lens[first+i] = uint8(i + 1)
	}
	return lens
}
