package robots

import "strings"

// The normal form makes octets comparable: escapes have upper-case digits, "~" is not escaped, and literal "*" and "$"
// are escaped. Octets beyond ASCII in a pattern are escaped; targets arrive escaped.

// normalTarget converts a path and query to normal form. It allocates only if the result differs.
func normalTarget(s string) string {
	if s == "" || s[0] != '/' {
		s = "/" + s
	}
	if isNormal(s, false) {
		return s
	}
	return string(appendNormal(nil, s, false))
}

func isNormal(s string, pattern bool) bool {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && isEscape(s[i:]):
			if isLower(s[i+1]) || isLower(s[i+2]) || s[i+1:i+3] == "7E" {
				return false
			}
		case mustEscape(s, i, pattern):
			return false
		}
	}
	return true
}

func appendNormal(dst []byte, s string, pattern bool) []byte {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '%' && isEscape(s[i:]):
			if strings.EqualFold(s[i+1:i+3], "7e") {
				dst = append(dst, '~')
			} else {
				dst = append(dst, '%', upper(s[i+1]), upper(s[i+2]))
			}
			i += 2
		case mustEscape(s, i, pattern):
			dst = appendOctet(dst, c, true)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

func appendOctet(dst []byte, c byte, escape bool) []byte {
	if !escape {
		return append(dst, c)
	}
	const digits = "0123456789ABCDEF"
	return append(dst, '%', digits[c>>4], digits[c&15])
}

func mustEscape(s string, i int, pattern bool) bool {
	switch c := s[i]; {
	case c == '*':
		return !pattern
	case c == '$':
		return !pattern || i < len(s)-1
	default:
		return pattern && c >= 0x80
	}
}

// isEscape reports whether s, which must begin with "%", begins with an escaped octet.
func isEscape(s string) bool { return len(s) > 2 && isHex(s[1]) && isHex(s[2]) }

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }

func upper(c byte) byte {
	if isLower(c) {
		c -= 'a' - 'A'
	}
	return c
}

// canonical converts a text in normal form to the canonical form of URLs: octets that need no escape (RFC 3986, 2.3)
// are not escaped, and octets that a canonical path cannot contain are. It allocates only if the result differs.
func canonical(s string) string {
	if isCanonical(s) {
		return s
	}
	dst := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); i++ {
		if c, ok := plainOctet(s[i:]); ok {
			dst = append(dst, c)
			i += 2
			continue
		}
		dst = appendOctet(dst, s[i], isUnsafe(s[i]))
	}
	return string(dst)
}

func isCanonical(s string) bool {
	for i := range len(s) {
		if _, ok := plainOctet(s[i:]); ok || isUnsafe(s[i]) {
			return false
		}
	}
	return true
}

// isUnsafe reports whether a URL's path contains an octet only as an escape (WHATWG URL, path percent-encode set). A
// query may contain some of them unescaped. Escaping them on both sides makes them equal there, too.
func isUnsafe(c byte) bool {
	switch c {
	case '"', '<', '>', '^', '`', '{', '}':
		return true
	}
	return c <= ' ' || c >= 0x7f
}

// plainOctet returns the octet of the escape at the beginning of s, if it is a letter, a digit, or one of "-._~".
func plainOctet(s string) (c byte, ok bool) {
	if s[0] != '%' || !isEscape(s) {
		return 0, false
	}
	c = digit(s[1])<<4 | digit(s[2])
	return c, isLower(c|0x20) || '0' <= c && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func digit(c byte) byte {
	if c >= 'A' {
		return upper(c) - 'A' + 10
	}
	return c - '0'
}
