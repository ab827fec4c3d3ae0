package weburl

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
)

// host writes a host: a name, or an IP address in any notation.
func (p *parser) host(in []byte) error {
	if len(in) == 0 {
		return ErrNoHost
	}
	if in[0] == '[' {
		return p.ipv6(in)
	}
	mark := len(p.dst)
	if !p.simpleHost(in) {
		name, err := domainToASCII(in)
		if err != nil {
			return err
		}
		p.dst = append(p.dst[:mark], name...)
	}
	if !endsInNumber(p.dst[mark:]) {
		return nil
	}
	addr, ok := parseIPv4(p.dst[mark:])
	if !ok {
		return ErrAddress
	}
	p.dst = addr.AppendTo(p.dst[:mark])
	return nil
}

// simpleHost writes a host name in lower case, and reports whether nothing else had to be done.
func (p *parser) simpleHost(in []byte) bool {
	for _, c := range in {
		if sets[c]&complexHost != 0 {
			return false
		}
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		p.dst = append(p.dst, c)
	}
	return true
}

// decode decodes percent-encoding.
func decode(in []byte) []byte {
	out := make([]byte, 0, len(in))
	for i := 0; i < len(in); i++ {
		if c, ok := unescape(in[i:]); ok {
			out = append(out, c)
			i += 2
			continue
		}
		out = append(out, in[i])
	}
	return out
}

// ipv6 writes an IPv6 address in brackets. Embedded IPv4 addresses are written differently from netip.
func (p *parser) ipv6(in []byte) error {
	if in[len(in)-1] != ']' || bytes.IndexByte(in, '%') >= 0 {
		return ErrAddress
	}
	addr, err := netip.ParseAddr(string(in[1 : len(in)-1]))
	if err != nil || !addr.Is6() {
		return ErrAddress
	}
	p.dst = append(p.dst, '[')
	if addr.Is4In6() {
		b := addr.As16()
		p.dst = append(p.dst, "::ffff:"...)
		p.dst = strconv.AppendUint(p.dst, uint64(b[12])<<8|uint64(b[13]), 16)
		p.dst = append(p.dst, ':')
		p.dst = strconv.AppendUint(p.dst, uint64(b[14])<<8|uint64(b[15]), 16)
	} else {
		p.dst = addr.AppendTo(p.dst)
	}
	p.dst = append(p.dst, ']')
	return nil
}

// FileNamePart returns a hostname as a part of a file name. An IPv6 address in brackets becomes words without colons,
// which some file systems do not allow. For example, [2001:db8::1] becomes ipv6-2001-db8-0-1, where 0 replaces the run
// of zeros.
func FileNamePart(hostname string) string {
	address, is := strings.CutPrefix(hostname, "[")
	if !is {
		return hostname
	}
	address = strings.TrimSuffix(address, "]")
	address = strings.Replace(address, "::", ":0:", 1)
	return "ipv6-" + strings.ReplaceAll(strings.Trim(address, ":"), ":", "-")
}
