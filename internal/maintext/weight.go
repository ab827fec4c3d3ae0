package maintext

import "unicode"

// weight is how many Latin letters say as much as r does: 3 for an ideograph, 2 for a syllable, 1 for a letter or a
// mark (the vowels of Indic scripts are marks), none for the rest.
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

// weigh adds up the letters of a text.
func weigh(s string) (sum int) {
	for _, r := range s {
		sum += weight(r)
	}
	return sum
}
