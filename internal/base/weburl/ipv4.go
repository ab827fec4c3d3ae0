package weburl

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// endsInNumber reports whether the last label of a host is a number. Such a host is an IPv4 address or invalid.
func endsInNumber(host []byte) bool {
	label := lastLabel(host)
	if len(label) == 0 || label[0] < '0' || '9' < label[0] {
		return false
	}
	if len(bytes.Trim(label, digits)) == 0 {
		return true
	}
	_, ok := parseNumber(label)
	return ok
}

// lastLabel returns the last label of a host, ignoring an empty label after a final dot.
func lastLabel(host []byte) []byte {
	host = bytes.TrimSuffix(host, []byte{'.'})
	return host[bytes.LastIndexByte(host, '.')+1:]
}

// parseIPv4 parses an address of one to four numbers. The last number fills the remaining bytes: 127.1 is 127.0.0.1.
func parseIPv4(host []byte) (a netip.Addr, ok bool) {
	host = bytes.TrimSuffix(host, []byte{'.'})
	var addr uint64
	for i := range 4 {
		label, rest, more := bytes.Cut(host, []byte{'.'})
		n, ok := parseNumber(label)
		if !ok {
			return a, false
		}
		if !more {
			var b [4]byte
			binary.BigEndian.PutUint32(b[:], uint32(addr<<(8*(4-i))|n))
			return netip.AddrFrom4(b), n < 1<<(8*(4-i))
		}
		if n > 255 {
			return a, false
		}
		addr, host = addr<<8|n, rest
	}
	return a, false
}

// parseNumber parses a decimal, octal (010) or hexadecimal (0x10) number. For a number too large for an address, it
// returns some number that is too large.
func parseNumber(label []byte) (n uint64, ok bool) {
	if len(label) == 0 {
		return 0, false
	}
	base := uint64(10)
	switch {
	case len(label) >= 2 && label[0] == '0' && label[1]|0x20 == 'x':
		label, base = label[2:], 16
	case len(label) >= 2 && label[0] == '0':
		label, base = label[1:], 8
	}
	for _, c := range label {
		d, ok := hexDigit(c)
		if !ok || uint64(d) >= base {
			return 0, false
		}
		n = min(n*base+uint64(d), 1<<32)
	}
	return n, true
}
