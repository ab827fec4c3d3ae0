package warc

import (
	"encoding/binary"

	"kumo/internal/base/field"
)

// appendToken is field.Token with a fast path for plain text; most of a visit's metadata are URLs.
func appendToken(dst []byte, s string) []byte {
	out := append(dst, s...)
	if s != "" && isPlain(out[len(dst):], '!') {
		return out
	}
	return field.Token(dst, s)
}

// appendText is field.Line with a fast path for plain text.
func appendText(dst []byte, s string) []byte {
	out := append(dst, s...)
	if isPlain(out[len(dst):], ' ') {
		return out
	}
	return field.Line(dst, s)
}

// isPlain reports whether all bytes are printable ASCII, and not below first.
func isPlain(b []byte, first byte) bool {
	const ones = 0x0101010101010101
	low := uint64(first) * ones
	// a top bit is set for a byte below first, above '~', or not ASCII; only such bytes produce carries
	bad := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		v := binary.LittleEndian.Uint64(b)
		bad |= (v - low) | (v + ones) | v
	}
	for _, c := range b {
		bad |= uint64(c-first) | uint64(c+1) | uint64(c)
	}
	return bad&(0x80*ones) == 0
}
