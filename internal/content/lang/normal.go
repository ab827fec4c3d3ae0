package lang

import (
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// toNFC appends the text in NFC to buf, or returns the text if it is in NFC already. Most text has only letters for
// which Unicode's tables are not needed; using them would take a third of a detection. The caller provides the
// iterator, because it is large and norm.NFC.Append would allocate one.
func toNFC(iter *norm.Iter, buf, text []byte) []byte {
	done := span(text)
	if done == len(text) {
		return text
	}
	for {
		buf = append(buf, text[:done]...)
		if text = text[done:]; len(text) == 0 {
			return buf
		}
		iter.Init(norm.NFC, text)
		buf = append(buf, iter.Next()...)
		text = text[iter.Pos():]
		done = span(text)
	}
}

// span returns the length of a prefix that is in NFC.
func span(text []byte) int {
	n := plain(text)
	if n < len(text) {
		n += norm.NFC.QuickSpan(text[n:])
	}
	return n
}

// plain returns the length of a prefix that is in NFC whatever follows: runes that neither combine nor decompose,
// without the last one before a rune that may.
func plain(text []byte) int {
	last := 0
	for i := 0; i < len(text); {
		for i+8 <= len(text) && binary.LittleEndian.Uint64(text[i:])&0x8080808080808080 == 0 { // eight bytes of ASCII
			last, i = i+7, i+8
		}
		if i == len(text) {
			break
		}
		r, n := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRune(text[i:])
			if !inert(r) {
				return last
			}
		}
		if r != virama {
			last = i
		}
		i += n
	}
	return len(text)
}

const virama = 0x94D

// inert reports whether a rune neither combines nor decomposes. It covers nearly all text in the scripts with a model.
// The virama is the only included mark with a combining class; alone it is always in order.
func inert(r rune) bool {
	switch {
	case r < 0x300, r >= 0x1EA0 && r <= 0x1EFF: // Latin
		return true
	case r >= 0x400 && r <= 0x481, r >= 0x48A && r <= 0x52F: // Cyrillic
		return true
	case r >= 0x60C && r <= 0x64A, r >= 0x660 && r <= 0x66F, r >= 0x671 && r <= 0x6D4: // Arabic
		return true
	case r >= 0x904 && r <= 0x950 && r != 0x93C, r >= 0x964 && r <= 0x97F: // Devanagari
		return true
	case r >= 0x200C && r <= 0x2027, r >= 0x20A0 && r <= 0x20BF, r == utf8.RuneError: // punctuation, currencies
		return true
	case r >= 0x3001 && r <= 0x3011, r >= 0x4E00 && r <= 0x9FFF, r >= 0xFF01 && r <= 0xFF5E: // Han
		return true
	}
	return false
}
