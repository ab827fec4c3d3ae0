package synthweb

import (
	"net/netip"
	"strconv"
	"strings"
)

// domain returns the domain of the hosts' names.
func (c *Config) domain() string {
	if c.OwnDomains {
		return ".test"
	}
	return sharedDomain
}

const sharedDomain = ".synth.test"

// Host returns the name of host i, or its address in a web without names. Names of dead hosts, from Len() on, contain
// their trait.
func (w *Web) Host(i int) string { return string(w.appendHost(nil, uint32(i))) }

func (w *Web) appendHost(dst []byte, i uint32) []byte {
	if w.cfg.ByAddress {
		return loopback(int(i)).AppendTo(dst)
	}
	h := &w.hosts[i]
	if !h.dead {
		dst = append(dst, 'h')
	} else {
		for t := Shut; t < numTraits; t++ {
			if h.traits.has(t) {
				dst = append(dst, traitNames[t]...)
			}
		}
	}
	for digit := uint32(1000); digit > max(i, 1); digit /= 10 {
		dst = append(dst, '0')
	}
	if i > 0 {
		dst = strconv.AppendUint(dst, uint64(i), 10)
	} else {
		dst = append(dst, '0')
	}
	return append(dst, w.cfg.domain()...)
}

// hostOf finds a host by its name, which may have a port.
func (w *Web) hostOf(name string) (uint32, bool) {
	if colon := strings.LastIndexByte(name, ':'); colon >= 0 {
		name = name[:colon]
	}
	if w.cfg.ByAddress {
		addr, err := netip.ParseAddr(name)
		i := loopbackIndex(addr)
		return uint32(max(i, 0)), err == nil && i >= 0 && i < len(w.hosts)
	}
	domain := w.cfg.domain()
	label, ok := strings.CutSuffix(name, domain)
	if !ok {
		label, ok = strings.CutSuffix(strings.ToLower(name), domain)
	}
	digits := strings.TrimLeft(label, "abcdefghijklmnopqrstuvwxyz")
	i, err := strconv.ParseUint(digits, 10, 32)
	if !ok || err != nil || i >= uint64(len(w.hosts)) {
		return 0, false
	}
	var buf [64]byte
	return uint32(i), string(w.appendHost(buf[:0], uint32(i))) == label+domain
}

// maxAddresses is the number of loopback addresses: 127.77.0.1 to 127.77.249.250.
const maxAddresses = 250 * 250

func loopback(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{127, 77, byte(i / 250), byte(1 + i%250)})
}

// loopbackIndex is the inverse of loopback; -1 for other addresses.
func loopbackIndex(addr netip.Addr) int {
	if !addr.Is4() {
		return -1
	}
	a := addr.As4()
	i := int(a[2])*250 + int(a[3]) - 1
	if i < 0 || i >= maxAddresses || loopback(i) != addr {
		return -1
	}
	return i
}
