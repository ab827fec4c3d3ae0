package netlab

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// RandomPorts makes a router map each connection of its host to a random port (symmetric NAT). Without it, a host's
// port keeps its number while that is free.
const RandomPorts = "random,fully-random"

// Behind adds a host that is reached only through a router, which is another host of the lab. The router forwards its
// packets, replaces its address with the router's own, and drops incoming packets that are not replies. ports is "" or
// RandomPorts. It needs the program nft (nftables). A router has one host.
func (l *Lab) Behind(router *Host, name, ports string) (*Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := byte(slices.Index(l.hosts, router) + 1)
	inner := netip.AddrFrom4([4]byte{192, 168, n, 1})
	h := &Host{lab: l, Name: name, space: l.prefix + name, port: "lan0", Addrs: []netip.Addr{inner.Next()},
		mac: net.HardwareAddr{2, 'k', 'u', 3, 0, n}}
	for _, args := range [][]string{
		{"netns", "add", h.space},
		{"-n", router.space, "link", "add", h.port, "type", "veth", "peer", "name", "eth0", "address", h.mac.String(),
			"netns", h.space},
		{"-n", router.space, "addr", "add", inner.String() + "/24", "dev", h.port},
		{"-n", router.space, "link", "set", h.port, "up"},
		{"-n", h.space, "link", "set", "lo", "up"},
		{"-n", h.space, "link", "set", "eth0", "up"},
		{"-n", h.space, "addr", "add", h.Addr().String() + "/24", "dev", "eth0"},
		{"-n", h.space, "route", "add", "default", "via", inner.String()},
	} {
		if err := ip(args...); err != nil {
			return nil, fmt.Errorf("add host %s behind %s: %w", name, router.Name, err)
		}
	}
	if err := h.Do(useReno); err != nil {
		return nil, fmt.Errorf("add host %s behind %s: %w", name, router.Name, err)
	}
	err := router.Do(func() error {
		if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1\n"), 0o644); err != nil {
			return err
		}
		return programWith(strings.NewReader(fmt.Sprintf(masquerade, ports)), "nft", "-f", "-")
	})
	if err != nil {
		return nil, fmt.Errorf("make %s a router: %w", router.Name, err)
	}
	return h, nil
}

// masquerade contains the firewall rules of a home router.
const masquerade = `
table ip nat {
	chain post {
		type nat hook postrouting priority 100;
		oifname "eth0" masquerade %s
	}
}
table ip filter {
	chain forward {
		type filter hook forward priority 0; policy drop;
		iifname "lan0" accept
		ct state established,related accept
	}
	chain input {
		type filter hook input priority 0; policy drop;
		iifname { "lan0", "lo" } accept
		ct state established,related accept
		icmp type echo-request accept
	}
}
`

// AddAddress gives the host another address, of another network. The lab's paths and cuts do not apply to it.
func (h *Host) AddAddress(addr netip.Prefix) error {
	if err := ip("-n", h.space, "addr", "add", addr.String(), "dev", "eth0"); err != nil {
		return fmt.Errorf("add an address to %s: %w", h.Name, err)
	}
	return nil
}
