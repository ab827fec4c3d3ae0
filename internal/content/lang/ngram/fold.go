package ngram

import (
	"unicode"
	"unicode/utf8"
)

// boundary replaces everything between words: spaces, punctuation, digits, and letters of other scripts.
const boundary = ' '

// Fold appends the letters of a script to dst, in lower case, with one boundary before, after and between words. It
// stops when dst is full.
func Fold(dst []rune, text []byte, script Script) []rune {
	if cap(dst)-len(dst) < 2 {
		return dst
	}
	dst = append(dst, boundary)
	limit := cap(dst) - 1
	for i := 0; i < len(text) && len(dst) < limit; {
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
		}
		i += n
		switch s := Of(r); {
		case s == script:
			dst = append(dst, lower(r))
		case s != Zinh && dst[len(dst)-1] != boundary:
			dst = append(dst, boundary)
		}
	}
	if dst[len(dst)-1] != boundary {
		dst = append(dst, boundary)
	}
	return dst
}

func lower(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r | 0x20 // callers pass only letters
	case r >= 0x530 && r < 0x10A0 || r >= 0x2E80 && r < 0xA640:
		return r // most other text is in scripts without case
	}
	return unicode.ToLower(r)
}
