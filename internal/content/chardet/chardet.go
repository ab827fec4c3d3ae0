// Package chardet detects the charset of a text that does not declare one.
//
// Each candidate charset has statistical models of its texts. A model yields the number of bits in which it encodes a
// text, and the charset with the fewest bits wins. For single-byte charsets the models are pairs of letters, one model
// for each language written in the charset, counted in a sample. For multi-byte charsets the models are character
// frequencies.
//
// The choice by pairs of letters follows S. Li and K. Momoi, "A composite approach to language/encoding detection"
// (2001). Unlike theirs, all models here share one unit, so their results can be compared without thresholds.
//
// docs/decisions/charset.md compares the package with libraries.
package chardet

import (
	"bytes"
	"unicode/utf8"
)

// A Result is a detected charset and the confidence.
type Result struct {
	// the WHATWG name if there is one, otherwise the IANA name in lower case; "" without evidence
	Name       string
	Confidence float64 // 0 to 1
}

// Detect detects the charset of a text. For ASCII text it returns the zero Result.
func Detect(text []byte) Result { return DetectIn(text, "") }

// DetectIn is like Detect for a text with a declared language, an ISO 639-1 code. The declaration decides only between
// charsets that fit the text nearly equally well, as is usual for a text of a few words.
func DetectIn(text []byte, lang string) Result {
	text = text[:min(len(text), maxText)]
	if name := detectEscapes(text); name != "" {
		return Result{name, 0.95}
	}
	if name := detectWide(text); name != "" {
		return Result{name, 0.9}
	}
	gist := gistOf(text)
	if len(gist) == 0 {
		return Result{}
	}
	if IsUTF8(text) {
		return Result{"utf-8", 0.99}
	}
	if isFlawedUTF8(text) {
		return Result{"utf-8", 0.95}
	}
	return best(gist, lang)
}

const (
	maxText = 1 << 20 // maximum number of bytes that are read
	maxGist = 4 << 10 // maximum number of bytes for the models
	// number of ASCII bytes after a non-ASCII byte in the gist: a possible second byte of a pair, and the next byte
	context = 2
)

// gistOf returns the part of a text that depends on the charset: non-ASCII bytes and the adjacent ASCII bytes.
func gistOf(text []byte) (gist []byte) {
	for end := 0; end < len(text) && len(gist) < maxGist; {
		start := end
		for start < len(text) && text[start] < utf8.RuneSelf {
			start++
		}
		if start == len(text) {
			break
		}
		from := max(end, start-context)
		if from > end {
			gist = append(gist, ' ')
		}
		end = start
		for ascii := 0; end < len(text) && ascii < context; end++ {
			if ascii++; text[end] >= utf8.RuneSelf {
				ascii = 0
			}
		}
		gist = append(gist, text[from:end]...)
	}
	return gist
}

// IsUTF8 reports whether a text is UTF-8. Its last character may be incomplete if there are other non-ASCII characters.
func IsUTF8(text []byte) bool {
	if utf8.Valid(text) {
		return true
	}
	whole := wholeRunes(text)
	return len(whole) < len(text) && utf8.Valid(whole) && len(gistOf(whole)) > 0
}

// perFlaw is the number of non-ASCII UTF-8 characters required for each invalid byte. Texts in other charsets have less
// than one, because their bytes form UTF-8 only by chance.
const perFlaw = 4

// isFlawedUTF8 reports whether a text is UTF-8 with a few invalid bytes, for example from a quotation in another
// charset or a truncated character.
func isFlawedUTF8(text []byte) bool {
	good, bad := 0, 0
	for len(text) > 0 {
		if text[0] < utf8.RuneSelf {
			text = text[1:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if text = text[size:]; r == utf8.RuneError && size == 1 {
			bad++
		} else {
			good++
		}
	}
	return good >= perFlaw*bad
}

// wholeRunes returns the text without an incomplete character at its end.
func wholeRunes(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// detectEscapes detects 7-bit charsets that use escape sequences.
func detectEscapes(text []byte) string {
	if bytes.IndexByte(text, 0x1B) < 0 {
		return ""
	}
	if bytes.Contains(text, []byte("\x1B$)C")) && bytes.IndexByte(text, 0x0E) >= 0 {
		return "iso-2022-kr"
	}
	for _, sequence := range []string{"\x1B$B", "\x1B$@", "\x1B$(D", "\x1B(I"} {
		if bytes.Contains(text, []byte(sequence)) &&
			bytes.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
			return "iso-2022-jp"
		}
	}
	return ""
}

// detectWide detects UTF-32 and UTF-16 without byte order mark, from the zero bytes of ASCII characters such as white
// space, which nearly all texts have.
func detectWide(text []byte) string {
	text = text[:min(len(text), 4<<10)&^3]
	if len(text) < 4 || bytes.IndexByte(text, 0) < 0 {
		return ""
	}
	var zeros [4]int
	for i, c := range text {
		if c == 0 {
			zeros[i%4]++
		}
	}
	quarter := len(text) / 4
	switch even, odd := zeros[0]+zeros[2], zeros[1]+zeros[3]; {
	case zeros[0] == quarter && zeros[1] >= quarter*9/10 && zeros[3] <= quarter/10:
		return "utf-32be"
	case zeros[3] == quarter && zeros[2] >= quarter*9/10 && zeros[0] <= quarter/10:
		return "utf-32le"
	case even > 2*odd && inPairs(text, 0):
		return "utf-16be"
	case odd > 2*even && inPairs(text, 1):
		return "utf-16le"
	}
	return ""
}

// inPairs reports whether a text with zero bytes at even (0) or odd (1) offsets is UTF-16. Most of the zeros must
// belong to ASCII characters, and most other pairs must not be two ASCII characters.
func inPairs(text []byte, place int) bool {
	ascii, other, both := 0, 0, 0
	for i := 0; i+1 < len(text); i += 2 {
		zero, c := text[i+place], text[i+1-place]
		switch {
		case zero != 0 && isASCII(zero) && isASCII(c):
			both++
		case zero != 0:
		case isASCII(c):
			ascii++
		default:
			other++
		}
	}
	return ascii > 4*other && 200*ascii >= len(text) && 4*both < len(text)
}

func isASCII(c byte) bool { return c >= ' ' && c < 0x7F || c == '\n' || c == '\r' || c == '\t' }
