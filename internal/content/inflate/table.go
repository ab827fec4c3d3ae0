package inflate

import (
	"math/bits"
	"sync"
)

const (
	maxCode  = 15 // bits of the longest code
	maxPre   = 7  // bits of the longest code of code lengths
	numLit   = 286
	numDist  = 30
	numPre   = 19
	litBits  = 10 // bits that the first look-up takes
	distBits = 8
	// the most that 288 codes can need is 1334, and 400 for 30 distances; a power of 2 makes an index safe by a mask
	litEntries  = 2048
	distEntries = 512
)

// An entry is what a table says about the next bits:
//
//	bits 0-5    how many bits it takes, those of the code and extra ones
//	bits 8-12   how many of them are the code
//	bit 13      none of the below: no code at all, or the end of the block
//	bit 14      with 13: end of the block
//	bit 15      with 13: go on in the second table that begins at value, with as many bits as 8-12 say
//	bits 16-30  value: a literal, or the least length or distance, to which the extra bits are added
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

	invalid = special | 1 // takes a bit, so that no input is a cut one
)

// Code lengths that are none.
const (
	repeatLast  = 16 + iota // 3 times and more
	repeatZero              // 3 times and more
	repeatZeros             // 11 times and more
)

// tables are those of a block.
type tables struct {
	lit  [litEntries]entry
	dist [distEntries]entry
}

// What codes mean, without the length that a table adds.
var (
	litMeaning  = litMeanings()
	distMeaning = distMeanings()
	preMeaning  = preMeanings()
)

// litMeanings follows RFC 1951, section 3.2.5. The last two of 288 take part in the fixed code, but mean nothing.
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

// preMeanings has the extra bits of repetitions.
func preMeanings() (m [numPre]entry) {
	for i := range m {
		m[i] = entry(i) << valueShift
	}
	m[repeatLast] |= 2
	m[repeatZero] |= 3
	m[repeatZeros] |= 7
	return m
}

// build fills a table, whose first look-up takes rootBits, for the code with these lengths. It is false if there is no
// such code.
//
// Codes are given out in their order, by length and symbol, each following from the one before; they are kept with
// their first bit lowest, as it comes in the stream. The table grows with them: for each further bit of length it is
// doubled by a copy of itself.
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
	space >>= maxCode - longest // beyond the longest it was only doubled
	if space != 1<<longest && (space > 1 || longest > 1) {
		return false
	}

	var symbols [288]uint16 // by length
	for sym, n := range lens {
		if n &= maxCode; n > 0 {
			symbols[offset[n]] = uint16(sym)
			offset[n]++
		}
	}
	table[0] = invalid // and so is what no code takes: all if there is none, the second half if there is one
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

// countLengths counts how many codes have each length. It counts into four tables by turns: most lengths are as the one
// before, and a number that was just written takes long to be read again.
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

// buildFurther adds the second tables, for codes of more than rootBits, of which code is the first.
func buildFurther(table []entry, rootBits, code uint, count, symbols []uint16, meaning []entry) {
	begin, end := uint(0), uint(1)<<rootBits
	prefix := end // none
	for n := rootBits + 1; n < uint(len(count)); n++ {
		step := uint(1) << (n - rootBits)
		for left := count[n]; left > 0; left-- {
			if p := code & (1<<rootBits - 1); p != prefix {
				// It is as wide as needed to hold all codes that follow, until it is full.
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

// nextCode adds one to a code of n bits whose first bit is the lowest. After the last it gives the last.
func nextCode(code, n uint) uint {
	// that of the code's zeros that counts least, 0 if there is none
	zero := uint(1) << (uint(bits.Len(code^(1<<n-1))) - 1)
	return code&(zero-1) | zero
}

// fixed makes the tables of RFC 1951, section 3.2.6.
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
