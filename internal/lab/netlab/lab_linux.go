package netlab

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// A Lab is a network of hosts. Its methods may be called concurrently.
type Lab struct {
	prefix string // prefix of all its namespaces
	hub    string // namespace of the bridge and the proxy
	proxy  *proxy

	mu        sync.Mutex // guards the following fields
	hosts     []*Host
	paths     map[pair]Path // paths that differ from direct delivery
	neighbors map[neighborKey]*neighborEntry
}

// labs numbers the labs of this process.
var labs atomic.Int64

// Open creates a lab without hosts. It first removes the leftovers of killed runs.
func Open(seed uint64) (l *Lab, err error) {
	for _, name := range []string{"ip", "tc"} {
		if _, err := tool(name); err != nil {
			return nil, err
		}
	}
	if err := removeStale(); err != nil {
		return nil, err
	}
	began, err := startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	prefix := fmt.Sprintf("%s%d-%s-%d-", namePrefix, os.Getpid(), began, labs.Add(1))
	l = &Lab{prefix: prefix, hub: prefix + "hub", paths: make(map[pair]Path),
		neighbors: make(map[neighborKey]*neighborEntry)}
	defer func() {
		if err != nil {
			_ = l.Close() // the first error counts
		}
	}()
	for _, args := range [][]string{
		{"netns", "add", l.hub},
		{"-n", l.hub, "link", "add", "br0", "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0"},
		{"-n", l.hub, "link", "set", "br0", "up"},
		{"-n", l.hub, "link", "add", "port0", "type", "veth", "peer", "name", "proxy0", "address", proxyMAC.String()},
		{"-n", l.hub, "link", "set", "port0", "master", "br0", "up"},
		{"-n", l.hub, "link", "set", "proxy0", "up"},
	} {
		if err := ip(args...); err != nil {
			return nil, err
		}
	}
	return l, in(l.hub, func() (err error) {
		l.proxy, err = openProxy("proxy0", seed)
		return err
	})
}

// Host adds a host with n consecutive addresses; the first host starts at 10.77.0.1. The whole network has room for
// 65,000 addresses.
func (l *Lab) Host(name string, n int) (*Host, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &Host{lab: l, Name: name, space: l.prefix + name, port: "port" + strconv.Itoa(len(l.hosts)+1)}
	next := 1
	for _, o := range l.hosts {
		next += len(o.Addrs)
	}
	if next+n > 65_001 {
		return nil, fmt.Errorf("add host %s: there is no room for %d more addresses", name, n)
	}
	for i := range n {
		h.Addrs = append(h.Addrs, netip.AddrFrom4([4]byte{10, 77, byte((next + i) >> 8), byte(next + i)}))
	}
	h.mac = hostMAC(next)
	l.hosts = append(l.hosts, h)
	return h, h.wire()
}

// wire creates the host's namespace and connects it.
func (h *Host) wire() error {
	hub := h.lab.hub
	todo := [][]string{
		{"netns", "add", h.space},
		{"-n", hub, "link", "add", h.port, "type", "veth", "peer", "name", "eth0", "address", h.mac.String(), "netns",
			h.space},
		{"-n", hub, "link", "set", h.port, "master", "br0", "up"},
		{"-n", h.space, "link", "set", "lo", "up"},
		{"-n", h.space, "link", "set", "eth0", "up"},
	}
	for _, args := range todo {
		if err := ip(args...); err != nil {
			return fmt.Errorf("add host %s: %w", h.Name, err)
		}
	}
	var addrs []string
	for _, addr := range h.Addrs {
		addrs = append(addrs, "addr add "+addr.String()+"/16 dev eth0")
	}
	if err := ipAll(h.space, addrs); err != nil {
		return fmt.Errorf("add host %s: %w", h.Name, err)
	}
	if err := h.Do(useReno); err != nil {
		return fmt.Errorf("add host %s: %w", h.Name, err)
	}
	h.lab.proxy.setMAC(h.Addrs, h.mac)
	return nil
}

// useReno makes a namespace's connections use TCP Reno, which every kernel has. The namespace would inherit BBR from
// the machine; with BBR, one of two connections on a slow link may get a third of the other's rate permanently.
func useReno() error {
	return os.WriteFile("/proc/sys/net/ipv4/tcp_congestion_control", []byte("reno\n"), 0o644)
}

// Close ends all processes of the lab and removes it. It may be called again.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.proxy != nil {
		l.proxy.close()
	}
	l.hosts = nil
	return remove(func(space string) bool { return space != l.prefix && strings.HasPrefix(space, l.prefix) })
}
