package cookies

import (
	"encoding/binary"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"
)

// Append appends a cookie in the format of [Read]: a byte of flags, the times in microseconds since 1970 as varints,
// and the length-prefixed strings.
func Append(b []byte, c *Cookie) []byte {
	flags := byte(0)
	for i, set := range [...]bool{c.HostOnly, c.Secure, !c.Expires.IsZero()} {
		if set {
			flags |= 1 << i
		}
	}
	b = append(b, flags)
	for _, t := range [...]time.Time{c.Created, c.Set, c.Expires} {
		if !t.IsZero() {
			b = binary.AppendVarint(b, t.UnixMicro())
		}
	}
	for _, s := range [...]string{c.Domain, c.Path, c.Name, c.Value} {
		b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
	}
	return b
}

// Read reads the cookie at the beginning of b. The data is not trusted: ok is false unless a server could have set the
// cookie.
func Read(b []byte) (c Cookie, rest []byte, ok bool) {
	if len(b) == 0 || b[0] > 7 {
		return c, nil, false
	}
	flags := b[0]
	c.HostOnly, c.Secure, b = flags&1 != 0, flags&2 != 0, b[1:]
	times := []*time.Time{&c.Created, &c.Set}
	if flags&4 != 0 {
		times = append(times, &c.Expires)
	}
	for _, t := range times {
		micros, n := binary.Varint(b)
		if n <= 0 {
			return c, nil, false
		}
		*t, b = time.UnixMicro(micros).UTC(), b[n:]
	}
	for _, s := range []*string{&c.Domain, &c.Path, &c.Name, &c.Value} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) || size > maxPair {
			return c, nil, false
		}
		*s, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	return c, b, c.isValid()
}

// isValid reports whether a jar may contain the cookie.
func (c *Cookie) isValid() bool {
	if c.Domain == "" || len(c.Domain) > maxHost || !strings.HasPrefix(c.Path, "/") || len(c.Path) > maxPath ||
		c.Name+c.Value == "" || len(c.Name)+len(c.Value) > maxPair || strings.ContainsRune(c.Name, '=') ||
		strings.ContainsFunc(c.Name+c.Value+c.Path+c.Domain, func(r rune) bool { return isControl(r) || r == ';' }) {
		return false
	}
	if !c.matchesPrefix(c.HostOnly && c.Path == "/") {
		return false
	}
	if c.HostOnly {
		return true
	}
	suffix, _ := publicsuffix.PublicSuffix(c.Domain)
	return suffix != c.Domain && !isAddress(c.Domain)
}

// Covers reports whether a cookie may be sent to a host, for some path.
func (c *Cookie) Covers(host string) bool {
	return c.Domain == host || !c.HostOnly && covers(c.Domain, host)
}

const (
	maxHost = 255  // bytes
	maxPath = 4096 // a default path from a URL may be longer than an attribute's
)
