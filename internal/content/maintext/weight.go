package maintext

import (
	"sync"
	"unicode"
	"unicode/utf8"
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

// A measure has the weight of a rune, and isSign for letters and digits.
const (
	weightMask = 3
	isSign     = 4
)

// measures has the measures of the first runes.
var measures = func() *[256]uint8 {
	var all [256]uint8
	for r := range all {
		all[r] = measureOf(rune(r))
	}
	return &all
}()

func measureOf(r rune) uint8 {
	m := uint8(weight(r))
	if m > 0 || unicode.IsDigit(r) {
		m |= isSign
	}
	return m
}

// measure returns the weight of a text, and its number of letters and digits.
func measure(s string) (weight, signs int) {
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			m := measures[c]
			weight += int(m & weightMask)
			signs += int(m >> 2)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		m := planeMeasure(r)
		weight += int(m & weightMask)
		signs += int(m >> 2)
		i += n
	}
	return weight, signs
}

// weigh returns the weight of a text.
func weigh(s string) int {
	w, _ := measure(s)
	return w
}

func planeMeasure(r rune) uint8 {
	if int(r) < len(plane()) {
		return plane()[r]
	}
	return measureOf(r)
}

// plane returns the measures of the basic plane, because Unicode's tables are slow to search.
var plane = sync.OnceValue(func() *[1 << 16]uint8 {
	var all [1 << 16]uint8
	for r := range all {
		all[r] = measureOf(rune(r))
	}
	return &all
})
