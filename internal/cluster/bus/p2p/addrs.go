package p2p

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const (
	maxAddrs = 8   // addresses of a node
	maxAddr  = 256 // bytes of an address in binary form
)

func listenAddrs(typed []string) (all []ma.Multiaddr, err error) {
	for _, text := range typed {
		if strings.HasPrefix(text, "/") {
			a, err := multiaddr(text, text)
			if err != nil {
				return nil, err
			}
			all = append(all, a)
			continue
		}
		host, port, err := splitAddress(text)
		if err != nil {
			return nil, err
		}
		hosts := []string{host}
		if host == "" {
			hosts = []string{"0.0.0.0", "::"}
		}
		for _, host := range hosts {
			ip, err := netip.ParseAddr(host)
			if err != nil {
				return nil, fmt.Errorf("listen address %q has no IP address: %w", text, err)
			}
			all = append(all, join(ip, "tcp", port, ""), join(ip, "udp", port, "/quic-v1"))
		}
	}
	return all, nil
}

func join(ip netip.Addr, transport string, port uint16, rest string) ma.Multiaddr {
	family := "ip6"
	if ip.Is4() {
		family = "ip4"
	}
	return ma.StringCast(fmt.Sprintf("/%s/%s/%s/%d%s", family, ip, transport, port, rest))
}

// dialAddr parses an address to dial: "host:port", which is TCP, or a multiaddr.
func dialAddr(text string) (ma.Multiaddr, error) {
	if strings.HasPrefix(text, "/") {
		return multiaddr(text, text)
	}
	host, port, err := splitAddress(text)
	if err != nil {
		return nil, err
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return join(ip, "tcp", port, ""), nil
	}
	return multiaddr(fmt.Sprintf("/dns/%s/tcp/%d", host, port), text)
}

// multiaddr parses a multiaddr. typed is the user's text, for the error.
func multiaddr(text, typed string) (ma.Multiaddr, error) {
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		return nil, fmt.Errorf("address %q: %w", typed, err)
	}
	return a, nil
}

func splitAddress(text string) (host string, port uint16, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: want host:port or a multiaddr: %w", text, err)
	}
	n, err := strconv.ParseUint(digits, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: want a port from 0 to 65535", text)
	}
	return host, uint16(n), nil
}

func isRelayed(a ma.Multiaddr) bool {
	_, err := a.ValueForProtocol(ma.P_CIRCUIT)
	return err == nil
}

// ranked sorts addresses by how likely they can be reached, and removes duplicates: public ones, those of a local
// network, relayed ones; loopback ones only if there are no others. It returns at most maxAddrs.
func ranked(addrs []ma.Multiaddr) []ma.Multiaddr {
	rank := func(a ma.Multiaddr) int {
		switch {
		case isRelayed(a):
			return 2
		case manet.IsIPLoopback(a):
			return 3
		case manet.IsPublicAddr(a):
			return 0
		}
		return 1
	}
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a ma.Multiaddr) bool { return len(a.Bytes()) > maxAddr })
	slices.SortStableFunc(addrs, func(a, b ma.Multiaddr) int { return cmp.Compare(rank(a), rank(b)) })
	var kept []ma.Multiaddr
	relayed := 0
	for _, a := range addrs {
		switch {
		case slices.ContainsFunc(kept, a.Equal), rank(a) == 3 && len(kept) > 0 && rank(kept[0]) != 3:
			continue
		case rank(a) == 2:
			relayed++
		case len(kept) == maxAddrs-2: // the last two places are for relayed addresses
			continue
		}
		if len(kept) < maxAddrs {
			kept = append(kept, a)
		}
	}
	return kept
}

func texts(addrs []ma.Multiaddr) []string {
	var all []string
	for _, a := range addrs {
		all = append(all, a.String())
	}
	return all
}
