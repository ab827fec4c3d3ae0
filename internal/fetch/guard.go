package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// ErrPrivate says that an address is not one of the public Internet.
var ErrPrivate = errors.New("private address, not visited without --allow-private")

// reserved are the networks that no public server is in, from the IANA registries of special-purpose addresses.
var reserved = prefixes(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
	"192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
	"224.0.0.0/4", "240.0.0.0/4",
	"::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16",
	"fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)

// nat64 and sixToFour hold an IPv4 address, which is the one that counts.
var (
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

// isPrivate reports whether a is loopback, private, link-local or otherwise not of the public Internet, in whatever form it is
// wrapped.
func isPrivate(a netip.Addr) bool {
	a = embedded(a.WithZone("").Unmap())
	for _, p := range reserved {
		if p.Contains(a) {
			return true
		}
	}
	return !a.IsValid()
}

// embedded returns the IPv4 address inside a translated or tunnelled one, otherwise a.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:]))
	}
	return a
}

// guard is a net.Dialer's ControlContext. It sees the very address that the socket is about to connect to.
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
