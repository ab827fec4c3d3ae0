package robots

import "strings"

// The normal form makes octets comparable: escapes have upper-case digits, "~" is plain, and where "*" and "$" mean
// themselves they are escaped. A pattern's octets beyond ASCII are escaped; a target is escaped to begin with.

// normalTarget brings a path and query to normal form. It allocates only when there is something to change.
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
			const digits = "0123456789ABCDEF"
			dst = append(dst, '%', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
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

// isEscape reports whether s, which begins with "%", begins with an escaped octet.
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

// unescaped replaces the escapes of octets that need none (RFC 3986, 2.3) in what is in normal form. It allocates only
// when there are some.
func unescaped(s string) string {
	if !escapesPlain(s) {
		return s
	}
	dst := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if c, ok := plainOctet(s[i:]); ok {
			dst = append(dst, c)
			i += 2
			continue
		}
		dst = append(dst, s[i])
	}
	return string(dst)
}

// escapesPlain reports whether s escapes an octet that needs no escape.
func escapesPlain(s string) bool {
	for i := strings.IndexByte(s, '%'); i >= 0 && i < len(s); i++ {
		if _, ok := plainOctet(s[i:]); ok {
			return true
		}
	}
	return false
}

// plainOctet is the octet that s begins with as an escape, if it is a letter, a digit, or one of "-._~".
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
