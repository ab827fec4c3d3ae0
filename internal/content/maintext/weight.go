package maintext

import (
	"sync"
	"unicode"
)

// weight returns the number of Latin letters to which a rune is equivalent: 3 for an ideograph, 2 for a syllable, 1 for
// a letter or a mark (the vowels of Indic scripts are marks), 0 for the rest.
func weight(r rune) int {
	switch {
	case r < 0x250:
		if unicode.IsLetter(r) {
			return 1
		}
		return 0
	case r >= 0x3040 && r <= 0x30FF, r >= 0xAC00 && r <= 0xD7AF, r >= 0x1200 && r <= 0x137F:
		return 2
	case unicode.Is(unicode.Han, r):
		return 3
	case unicode.IsLetter(r), unicode.IsMark(r):
		return 1
	}
	return 0
}

// weights caches the weights of the basic plane. A page's text is weighed several times, and looking up runes in
// Unicode's tables took a quarter of the time of an extraction.
var weights = sync.OnceValue(func() *[1 << 16]uint8 {
	var all [1 << 16]uint8
	for r := range all {
		all[r] = uint8(weight(rune(r)))
	}
	return &all
})

// weigh returns the weight of a text.
func weigh(s string) (sum int) {
	table := weights()
	for _, r := range s {
		if int(r) < len(table) {
			sum += int(table[r])
		} else {
			sum += weight(r)
		}
	}
	return sum
}
