package weburl

import (
	"bytes"
	"slices"
)

// trimSpace removes leading and trailing control characters and spaces.
func trimSpace(in []byte) []byte {
	for len(in) > 0 && in[0] <= ' ' {
		in = in[1:]
	}
	for len(in) > 0 && in[len(in)-1] <= ' ' {
		in = in[:len(in)-1]
	}
	return in
}

// removeBreaks removes tabs and line breaks, which authors put into long URLs. It copies only if there are any.
func removeBreaks(in []byte) []byte {
	for _, c := range []byte("\t\n\r") {
		if bytes.IndexByte(in, c) >= 0 {
			return slices.DeleteFunc(bytes.Clone(in), isBreak)
		}
	}
	return in
}

func isBreak(c byte) bool { return c == '\t' || c == '\n' || c == '\r' }

func isSlash(c byte) bool { return c == '/' || c == '\\' }

func trimSlashes(in []byte) []byte {
	for len(in) > 0 && isSlash(in[0]) {
		in = in[1:]
	}
	return in
}

// schemeLen returns the length of the scheme of in without the colon; 0 if it has none.
func schemeLen(in []byte) int {
	for i, c := range in {
		switch {
		case c == ':':
			return i
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return 0
		}
	}
	return 0
}

// knownScheme returns the scheme in lower case if its URLs are fully parsed, otherwise "".
func knownScheme(scheme []byte) string {
	var low [len("https")]byte
	if len(scheme) > len(low) {
		return ""
	}
	for i, c := range scheme {
		low[i] = c | 0x20
	}
	switch string(low[:len(scheme)]) {
	case "http":
		return "http"
	case "https":
		return "https"
	case "ftp":
		return "ftp"
	}
	return ""
}

// pathLen returns the length of in before a query or fragment.
func pathLen(in []byte) int {
	if i := bytes.IndexByte(in, '#'); i >= 0 {
		in = in[:i]
	}
	if i := bytes.IndexByte(in, '?'); i >= 0 {
		in = in[:i]
	}
	return len(in)
}

// authorityLen returns the length of in before a path, query or fragment.
func authorityLen(in []byte) int {
	for i, c := range in {
		if isSlash(c) || c == '?' || c == '#' {
			return i
		}
	}
	return len(in)
}

// cutPort splits off the port with its colon. The host may be an address in brackets.
func cutPort(in []byte) (host, port []byte) {
	from := bytes.IndexByte(in, ']') + 1
	if i := bytes.IndexByte(in[from:], ':'); i >= 0 && (from == 0 || in[0] == '[') {
		return in[:from+i], in[from+i+1:]
	}
	return in, nil
}
