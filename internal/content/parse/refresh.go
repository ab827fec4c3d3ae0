package parse

import (
	"bytes"
	"math"
)

// ParseRefresh parses the content of a meta refresh or the value of a Refresh field: a delay in seconds and a URL. An
// empty URL means the page itself. It returns false if the value is not valid.
func ParseRefresh(value string) (delay int, url string, ok bool) {
	delay, ref, ok := parseRefresh([]byte(value))
	return delay, string(ref), ok
}

// parseRefresh implements the HTML standard's "shared declarative refresh steps". An empty ref means the page itself.
// It returns false if the value is not valid.
func parseRefresh(in []byte) (seconds int, ref []byte, ok bool) {
	in = trimLeft(in)
	n := digitsLen(in)
	if n == 0 && (len(in) == 0 || in[0] != '.') {
		return 0, nil, false
	}
	seconds = number(in[:n])
	in = bytes.TrimLeft(in[n:], "0123456789.")
	if len(in) == 0 {
		return seconds, nil, true
	}
	if !isSpace(in[0]) && in[0] != ';' && in[0] != ',' {
		return 0, nil, false
	}
	in = trimLeft(in)
	if len(in) > 0 && (in[0] == ';' || in[0] == ',') {
		in = in[1:]
	}
	return seconds, refreshURL(trimLeft(in)), true
}

// refreshURL returns the rest of the value without "url=" and quotes.
func refreshURL(in []byte) []byte {
	if len(in) > 3 && equalFold(in[:3], "url") {
		if rest := trimLeft(in[3:]); len(rest) > 0 && rest[0] == '=' {
			in = trimLeft(rest[1:])
		}
	}
	if len(in) > 0 && (in[0] == '"' || in[0] == '\'') {
		quote := in[0]
		in = in[1:]
		if i := bytes.IndexByte(in, quote); i >= 0 {
			in = in[:i]
		}
	}
	return in
}

func trimLeft(in []byte) []byte { return bytes.TrimLeft(in, " \t\n\r\f") }

func digitsLen(in []byte) (n int) {
	for n < len(in) && '0' <= in[n] && in[n] <= '9' {
		n++
	}
	return n
}

// number returns the value of digits, at most MaxInt32.
func number(digits []byte) (n int) {
	for _, c := range digits {
		n = min(n*10+int(c-'0'), math.MaxInt32)
	}
	return n
}
