// Package field appends untrusted text to lines of text files, escaped so that it cannot break out of its field.
//
// All functions append to dst and return the extended slice. They replace invalid UTF-8 by U+FFFD.
package field

import (
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// JSON appends s as a JSON string, quotes included.
func JSON(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0 // of the bytes that need no escape and are not copied yet
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < 0x7f {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= utf8.RuneSelf && !mustEscape(r, size) { // the rest of ASCII must be escaped
			i += size
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, r)
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// mustEscape reports whether a rune that is not ASCII is invalid or invisible: a control character, a line separator,
// or a Unicode format character (direction, joining, byte order marks, tags). These make different texts look alike.
func mustEscape(r rune, size int) bool {
	return r == utf8.RuneError && size == 1 || control(r) || isFormat(r)
}

// isFormat is unicode.Is(unicode.Cf, r), but fast for most letters.
func isFormat(r rune) bool {
	if '\u206f' < r && r < '\ufeff' || '\u00ad' < r && r < '\u0600' {
		return false
	}
	return unicode.Is(unicode.Cf, r)
}

// IsBidiControl reports whether a character changes the writing direction of the text around it, which can make a text
// look like another.
func IsBidiControl(r rune) bool {
	switch {
	case r < '\u061c':
		return false
	case r == '\u061c', r == '\u200e', r == '\u200f', '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return true
	}
	return false
}

func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return appendEscape(appendEscape(dst, high), low)
	}
	return append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}

// Line appends s as a single line: control characters become spaces.
func Line(dst []byte, s string) []byte {
	for _, r := range s {
		if control(r) {
			r = ' '
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst
}

// Token appends s without white space, for lines whose fields are separated by white space. Spaces and control
// characters are percent-encoded, as in a URL. An empty s becomes "-".
func Token(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, '-')
	}
	for _, r := range s {
		switch {
		case r == ' ' || r < ' ' || r == 0x7f:
			dst = append(dst, '%', hexUpper(r>>4), hexUpper(r))
		case control(r) || unicode.IsSpace(r):
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return dst
}

func control(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029'
}

func hexUpper(r rune) byte { return "0123456789ABCDEF"[r&15] }
