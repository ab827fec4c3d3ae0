package weburl

import "strconv"

// A set is a set of bytes, identified by its bit in the table sets. Bits can be combined.
type set uint16

// The percent-encode sets of the standard, and those for the canonical form.
const (
	encodeControl  set = 1 << iota // control characters and non-ASCII
	encodeFragment                 // the fragment set
	encodeQuery                    // the special-query set
	encodePath                     // the path set
	encodeUser                     // the userinfo set
	canonicalQuery                 // bytes of a query that the canonical form may change
	canonicalPath                  // bytes of a path that the canonical form may change
	unreserved                     // of RFC 3986: equivalent whether encoded or not
	complexHost                    // bytes of a host name that need more than lower-casing, or are forbidden
	forbiddenHost                  // the forbidden domain code points
	backslash                      // only the backslash
	upper                          // upper-case letters
	upperHex                       // hexadecimal digits, letters in upper case only
)

const (
	queryChars = " \"#<>"
	pathChars  = queryChars + "?^`{}"
	// excluded are the characters that RFC 3986 allows nowhere, besides those in every set.
	excluded = "\\^`{|}"
)

var sets = makeSets()

func makeSets() (t [256]set) {
	add := func(chars string, s set) {
		for _, c := range []byte(chars) {
			t[c] |= s
		}
	}
	const encodes = encodeControl | encodeFragment | encodeQuery | encodePath | encodeUser | canonicalQuery | canonicalPath
	for c := range t {
		if c < ' ' || c > '~' {
			t[c] |= encodes | complexHost | forbiddenHost
		}
	}
	add(" \"<>`", encodeFragment)
	add(queryChars+"'", encodeQuery|canonicalQuery)
	add(pathChars, encodePath|encodeUser|canonicalPath)
	add("/:;=@[\\]|", encodeUser)
	add(excluded+"%", canonicalQuery|canonicalPath)
	add("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~", unreserved)
	add(" #/:<>?@[\\]^|%", complexHost|forbiddenHost)
	add("\\", backslash)
	add("ABCDEFGHIJKLMNOPQRSTUVWXYZ", upper)
	add("0123456789ABCDEF", upperHex)
	return t
}

// appendEncoded appends in and percent-encodes the bytes that are in the set. If the set contains the percent sign, as
// those for the canonical form do, existing percent-encoding is normalized.
func appendEncoded(dst, in []byte, set set) []byte {
	run := 0
	for i := 0; i < len(in); i++ {
		c := in[i]
		if sets[c]&set == 0 {
			continue
		}
		dst = append(dst, in[run:i]...)
		run = i + 1
		if c == '%' {
			if d, ok := unescape(in[i:]); ok {
				dst = appendNormal(dst, d)
				i += 2
				run = i + 1
				continue
			}
		}
		dst = appendEscape(dst, c)
	}
	return append(dst, in[run:]...)
}

// appendNormal appends the normal form of a percent-encoded byte.
func appendNormal(dst []byte, c byte) []byte {
	if sets[c]&unreserved != 0 {
		return append(dst, c)
	}
	return appendEscape(dst, c)
}

func appendEscape(dst []byte, c byte) []byte {
	const hex = "0123456789ABCDEF"
	return append(dst, '%', hex[c>>4], hex[c&15])
}

// unescape decodes the percent-encoded byte at the beginning of in.
func unescape(in []byte) (byte, bool) {
	if len(in) < 3 || in[0] != '%' {
		return 0, false
	}
	high, ok1 := hexDigit(in[1])
	low, ok2 := hexDigit(in[2])
	return high<<4 | low, ok1 && ok2
}

func hexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

func appendInt(dst []byte, n int) []byte { return strconv.AppendInt(dst, int64(n), 10) }
