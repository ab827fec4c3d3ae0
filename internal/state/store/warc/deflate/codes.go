package deflate

import "math/bits"

// The fixed code of RFC 1951, section 3.2.6, in the bit order of the output: codes reversed, followed by extra bits.

// A code is a bit sequence, the first bit lowest.
type code struct {
	bits uint32
	n    uint8
}

var (
	literals  [256]code
	lengths   [maxMatch + 1]code // by match length
	distances [30]code           // by distance symbol, without extra bits
)

const (
	minMatch = 4 // minimum match to look for; the format allows 3
	maxMatch = 258
)

func init() {
	for b := range literals {
		literals[b] = symbol(b)
	}
	for length := 3; length < maxMatch; length++ {
		lengths[length] = lengthCode(length)
	}
	lengths[maxMatch] = symbol(285) // without extra bits
	for s := range distances {
		distances[s] = turned(uint32(s), 5)
	}
}

// symbol returns the code of a literal or length symbol.
func symbol(s int) code {
	v := uint32(s)
	switch {
	case s < 144:
		return turned(0x30+v, 8)
	case s < 256:
		return turned(0x190+v-144, 9)
	case s < 280:
		return turned(v-256, 7)
	}
	return turned(0xc0+v-280, 8)
}

func turned(v uint32, n uint8) code { return code{bits.Reverse32(v) >> (32 - n), n} }

// lengthCode returns the code of a length below maxMatch, with extra bits. From length 11 on, the number of extra bits
// grows by one every four symbols.
func lengthCode(length int) code {
	v := length - 3
	if v < 8 {
		return symbol(257 + v)
	}
	extra := bits.Len(uint(v)) - 3
	c := symbol(257 + 4*extra + v>>extra)
	return code{c.bits | uint32(v&(1<<extra-1))<<c.n, c.n + uint8(extra)}
}

// distanceCode returns the code of a distance from 1 to 32,768, with extra bits. From distance 5 on, the number of
// extra bits grows by one every two symbols.
func distanceCode(distance int) code {
	v := uint32(distance - 1)
	if v < 4 {
		return distances[v]
	}
	extra := uint8(bits.Len32(v) - 2)
	c := distances[2*uint32(extra)+v>>extra]
	return code{c.bits | (v&(1<<extra-1))<<c.n, c.n + extra}
}
