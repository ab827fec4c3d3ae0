package parse

import (
	"bytes"
	"html"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// appendUnescaped appends an attribute value with its character references replaced. The first "&" is at i. In
// attributes, a named reference without a semicolon is not replaced if a letter, a digit or "=" follows, so
// "?a=1&copy=2" is unchanged.
func appendUnescaped(dst, value []byte, i int) []byte {
	for ; i >= 0; i = bytes.IndexByte(value, '&') {
		end := i + len("&amp;")
		if end <= len(value) && string(value[i:end]) == "&amp;" { // nearly always
			dst, value = append(dst, value[:i+1]...), value[end:]
			continue
		}
		dst, value = append(dst, value[:i]...), value[i+1:]
		var n int
		if len(value) > 0 && value[0] == '#' {
			dst, n = appendNumeric(dst, value)
		} else {
			dst, n = appendNamed(dst, value)
		}
		if n == 0 {
			dst = append(dst, '&')
		}
		value = value[n:]
	}
	return append(dst, value...)
}

// maxEntity is longer than all character names.
const maxEntity = 40

// appendNamed appends the character for the name at the beginning of in, and returns the name's length with its
// semicolon; 0 if there is none.
func appendNamed(dst, in []byte) ([]byte, int) {
	n := 0
	for n < len(in) && isAlnum(in[n]) {
		n++
	}
	semicolon := n < len(in) && in[n] == ';'
	switch {
	case n == 0 || n > maxEntity || !semicolon && n < len(in) && in[n] == '=':
		return dst, 0
	default:
		text, ok := entity(string(in[:n]), semicolon)
		if !ok {
			return dst, 0
		}
		dst = append(dst, text...)
	}
	if semicolon {
		n++
	}
	return dst, n
}

// entity looks up a name with the html package's function for text. That also resolves names that only begin with a
// known one ("notit" becomes "¬it"), and then the result contains the rest of the name.
func entity(name string, semicolon bool) (text string, ok bool) {
	if !semicolon {
		text = html.UnescapeString("&" + name)
		return text, utf8.RuneCountInString(text) == 1
	}
	text = html.UnescapeString("&" + name + ";")
	return text, text == ";" || !strings.HasSuffix(text, ";")
}

// appendNumeric appends the character for the number at the beginning of in, and returns the number's length; 0 if
// there is none.
func appendNumeric(dst, in []byte) ([]byte, int) {
	n, base := 1, rune(10)
	if n < len(in) && toLower(in[n]) == 'x' {
		n, base = 2, 16
	}
	start, r := n, rune(0)
	for ; n < len(in) && digit(in[n]) < base; n++ {
		r = min(r*base+digit(in[n]), utf8.MaxRune+1)
	}
	if n == start {
		return dst, 0
	}
	if n < len(in) && in[n] == ';' {
		n++
	}
	switch {
	case r == 0:
		r = utf8.RuneError
	case 0x80 <= r && r < 0xA0: // the author meant windows-1252
		r = charmap.Windows1252.DecodeByte(byte(r))
	}
	return utf8.AppendRune(dst, r), n // replaces surrogates and numbers beyond Unicode with U+FFFD
}

// digit returns the value of a hexadecimal digit; for other characters, a larger value than that of any digit.
func digit(c byte) rune {
	switch c = toLower(c); {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c-'a') + 10
	}
	return 16
}

func isAlnum(c byte) bool { return isLetter(c) || '0' <= c && c <= '9' }
