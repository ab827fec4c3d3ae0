package weburl

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// maxHost bounds the length in bytes of a host name that needs IDNA processing, whose cost grows faster than the name. DNS
// itself ends at 253.
const maxHost = 1024

// profile is the standard's "domain to ASCII": UTS 46, non-transitional, with CheckJoiners and CheckBidi, without
// CheckHyphens, UseSTD3ASCIIRules and VerifyDnsLength.
var profile = idna.New(
	idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false), idna.ValidateLabels(true),
	idna.CheckHyphens(false), idna.CheckJoiners(true), idna.BidiRule(), idna.VerifyDNSLength(false),
)

// host writes a host: a name or an IP address in any of its forms.
func (p *parser) host(in []byte) error {
	if len(in) == 0 {
		return ErrNoHost
	}
	if in[0] == '[' {
		return p.ipv6(in)
	}
	mark := len(p.dst)
	simple := p.simpleHost(in)
	if name := p.dst[mark:]; !simple || hasALabel(name) && string(name) != p.base.Hostname() {
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
	p.dst = appendIPv4(p.dst[:mark], addr)
	return nil
}

// simpleHost writes the host name in lower case and reports whether that was all there is to do, but for A-labels.
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

// hasALabel reports whether a label of the name, which is in lower case, may be Punycode.
func hasALabel(name []byte) bool { return bytes.Contains(name, []byte("xn--")) }

// domainToASCII decodes percent-encoding and applies IDNA.
func domainToASCII(in []byte) (string, error) {
	raw := decode(in)
	if len(raw) > maxHost || !utf8.Valid(raw) {
		return "", ErrHost
	}
	name, err := toASCII(string(raw))
	if err != nil || name == "" {
		return "", ErrHost
	}
	for _, c := range []byte(name) {
		if sets[c]&forbiddenHost != 0 {
			return "", ErrHost
		}
	}
	return name, nil
}

// toASCII leaves ASCII names without A-labels to the standard's shortcut: they need no validation.
func toASCII(name string) (string, error) {
	lower := strings.ToLower(name)
	ascii := strings.IndexFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
	if ascii && !hasALabel([]byte(lower)) {
		return lower, nil
	}
	return profile.ToASCII(name)
}

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

// ipv6 writes an address in brackets. It differs from netip's form where an IPv4 address is embedded.
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
