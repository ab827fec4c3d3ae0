package inflate

import (
	"math/bits"
	"sync"
)

const (
	maxCode  = 15 // bits of the longest code
	maxPre   = 7  // bits of the longest code length code
	numLit   = 286
	numDist  = 30
	numPre   = 19
	litBits  = 10 // bits of the first lookup
	distBits = 8
	// 288 codes need at most 1334 entries, 30 distances at most 400; with a power of 2, a mask makes an index safe
	litEntries  = 2048
	distEntries = 512
)

// An entry describes the code in the next bits:
//
//	bits 0-5    number of bits to consume: those of the code and extra ones
//	bits 8-12   number of bits of the code
//	bit 13      special: an invalid code, the end of the block, or a longer code
//	bit 14      with 13: end of the block
//	bit 15      with 13: continue in the second table at value, which is indexed by as many bits as 8-12 contain
//	bits 16-30  value: a literal, or the base length or distance, to which the extra bits are added
//	bit 31      a literal
type entry = uint32

const (
	takesMask  = 63
	codeShift  = 8
	codeMask   = 31
	special    = 1 << 13
	endOfBlock = 1 << 14
	further    = 1 << 15
	valueShift = 16
	valueMask  = 1<<15 - 1
	literal    = 1 << 31

	invalid = special | 1 // consumes a bit, so that it differs from truncated input
)

// Code lengths that are repetitions.
const (
	repeatLast  = 16 + iota // at least 3 times
	repeatZero              // at least 3 times
	repeatZeros             // at least 11 times
)

// tables are the decoding tables of a block.
type tables struct {
	lit  [litEntries]entry
	dist [distEntries]entry
}

// Entries of the symbols, without the length of the code, which build adds.
var (
	litMeaning  = litMeanings()
	distMeaning = distMeanings()
	preMeaning  = preMeanings()
)

// litMeanings follows RFC 1951, section 3.2.5. The last two of 288 symbols are part of the fixed code, but invalid.
func litMeanings() (m [288]entry) {
	for i := range 256 {
		m[i] = literal | entry(i)<<valueShift
	}
	m[256] = special | endOfBlock
	least := 3
	for i := range 28 {
		extra := max(i/4-1, 0)
		m[257+i] = entry(least)<<valueShift | entry(extra)
		least += 1 << extra
	}
	m[285] = 258 << valueShift
	m[286], m[287] = special, special
	return m
}

func distMeanings() (m [32]entry) {
	least := 1
	for i := range numDist {
		extra := max(i/2-1, 0)
		m[i] = entry(least)<<valueShift | entry(extra)
		least += 1 << extra
	}
	m[30], m[31] = special, special
	return m
}

// preMeanings adds the extra bits of repetitions.
func preMeanings() (m [numPre]entry) {
	for i := range m {
		m[i] = entry(i) << valueShift
	}
	m[repeatLast] |= 2
	m[repeatZero] |= 3
	m[repeatZeros] |= 7
	return m
}

// build fills a table for the code with the given lengths. rootBits is the number of bits of the first lookup. It
// returns false if the lengths form no valid code.
//
// Codes are assigned in order of length and symbol, each derived from the previous one. Their first bit is the lowest,
// as in the stream. For each further bit of length, the table is doubled by copying it.
func build(table []entry, rootBits uint, lens []uint8, meaning []entry) bool {
	count := countLengths(lens)
	longest, space := uint(0), 0
	var offset [maxCode + 1]uint16
	for n := uint(1); n <= maxCode; n++ {
		offset[n] = offset[n-1] + count[n-1]
		space = space<<1 + int(count[n])
		if count[n] > 0 {
			longest = n
		}
	}
	space >>= maxCode - longest // undo the doublings beyond the longest length
	if space != 1<<longest && (space > 1 || longest > 1) {
		return false
	}

	var symbols [288]uint16 // sorted by length
	for sym, n := range lens {
		if n &= maxCode; n > 0 {
			symbols[offset[n]] = uint16(sym)
			offset[n]++
		}
	}
	table[0] = invalid // unused entries stay invalid: all if there is no code, every second if there is one
	next, code, size := 0, uint(0), 1
	for n := uint(1); n <= min(longest, rootBits); n++ {
		copy(table[size:2*size], table[:size])
		size *= 2
		for range count[n] {
			table[code] = meaning[symbols[next]] + entry(n*(1|1<<codeShift))
			next++
			code = nextCode(code, n)
		}
	}
	for ; size < 1<<rootBits; size *= 2 {
		copy(table[size:2*size], table[:size])
	}
	if longest > rootBits {
		buildFurther(table, rootBits, code, count[:longest+1], symbols[next:], meaning)
	}
	return true
}

// countLengths counts the codes of each length. It uses four counters in turn: adjacent lengths are often equal, and
// reading a number just after it was written is slow.
func countLengths(lens []uint8) (count [maxCode + 1]uint16) {
	var turns [4][maxCode + 1]uint16
	for ; len(lens) >= 4; lens = lens[4:] {
		turns[0][lens[0]&maxCode]++
		turns[1][lens[1]&maxCode]++
		turns[2][lens[2]&maxCode]++
		turns[3][lens[3]&maxCode]++
	}
	for _, n := range lens {
		turns[0][n&maxCode]++
	}
	for n := 1; n <= maxCode; n++ {
		count[n] = turns[0][n] + turns[1][n] + turns[2][n] + turns[3][n]
	}
	return count
}

// buildFurther adds the second-level tables for codes longer than rootBits. code is the first of them.
func buildFurther(table []entry, rootBits, code uint, count, symbols []uint16, meaning []entry) {
	begin, end := uint(0), uint(1)<<rootBits
	prefix := end // none
	for n := rootBits + 1; n < uint(len(count)); n++ {
		step := uint(1) << (n - rootBits)
		for left := count[n]; left > 0; left-- {
			if p := code & (1<<rootBits - 1); p != prefix {
				// A second-level table is wide enough for the codes that follow, until it is full.
				width, space := n-rootBits, uint(left)
				for space < 1<<width {
					width++
					space = space<<1 + uint(count[rootBits+width])
				}
				prefix, begin, end = p, end, end+1<<width
				table[p] = special | further | entry(begin<<valueShift|width<<codeShift|rootBits)
			}
			e := meaning[symbols[0]] + entry((n-rootBits)*(1|1<<codeShift))
			symbols = symbols[1:]
			for i := begin + code>>rootBits; i < end; i += step {
				table[i] = e
			}
			code = nextCode(code, n)
		}
	}
}

// nextCode returns the code after code, of n bits with the first bit lowest. After the last code it returns the last.
func nextCode(code, n uint) uint {
	// the highest zero bit of code, 0 if there is none
	zero := uint(1) << (uint(bits.Len(code^(1<<n-1))) - 1)
	return code&(zero-1) | zero
}

// fixed returns the tables of RFC 1951, section 3.2.6.
var fixed = sync.OnceValue(func() *tables {
	var lens [288 + 32]uint8
	for i := range lens {
		switch {
		case i < 144 || 280 <= i && i < 288:
			lens[i] = 8
		case i < 256:
			lens[i] = 9
		case i < 280:
			lens[i] = 7
		default:
			lens[i] = 5
		}
	}
	f := new(tables)
	if !build(f.lit[:], litBits, lens[:288], litMeaning[:]) || !build(f.dist[:], distBits, lens[288:], distMeaning[:]) {
		panic("the fixed codes are wrong")
	}
	return f
})
