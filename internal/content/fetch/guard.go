package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrPrivate means that an address is not public.
var ErrPrivate = errors.New("private address, not visited without --allow-private")

// reserved are the networks without public servers, from the IANA registries of special-purpose addresses. For IPv6 it
// lists only networks inside the allocated space.
var reserved = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"2001::/23" /* Teredo among them */, "2001:db8::/32", "3fff::/20",
)

// global is the IPv6 space that IANA allocates for the public Internet. nat64 is the only network outside of it that
// leads there. All other addresses are not public: loopback, local, IPv4-compatible and IPv4-translated addresses,
// local-use NAT64, multicast.
var (
	global    = netip.MustParsePrefix("2000::/3")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// isPrivate reports whether a is loopback, private, link-local or otherwise not public, also if it is embedded in an
// IPv6 address.
func isPrivate(a netip.Addr) bool {
	a = a.WithZone("").Unmap()
	switch {
	case !a.IsValid(), isReserved(a):
		return true
	case a.Is4():
		return false
	}
	return !global.Contains(a) && !nat64.Contains(a) || leadsToReserved(a)
}

func isReserved(a netip.Addr) bool {
	return slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(a) })
}

// leadsToReserved reports whether a tunnel or translator would forward packets for an IPv6 address to a reserved IPv4
// address.
func leadsToReserved(a netip.Addr) bool {
	b := a.As16()
	return (nat64.Contains(a) || isISATAP(b)) && isReserved(netip.AddrFrom4([4]byte(b[12:16]))) ||
		sixToFour.Contains(a) && isReserved(netip.AddrFrom4([4]byte(b[2:6])))
}

// isISATAP reports whether an address's interface identifier is an IPv4 address (RFC 5214), in any network.
func isISATAP(b [16]byte) bool {
	const universal, group = 2, 1 // bits that may be set
	return b[8]&^(universal|group) == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}

// guard is the ControlContext of a net.Dialer. It receives the exact address that the socket connects to.
func guard(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	if isPrivate(ap.Addr()) {
		return fmt.Errorf("%s: %w", ap.Addr(), ErrPrivate)
	}
	return nil
}
