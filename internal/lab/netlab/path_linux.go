package netlab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// A Path describes the transmission of packets from one host to another.
type Path struct {
	Delay  time.Duration
	Jitter time.Duration // maximum additional delay, random for each packet; packets stay in order
	Loss   float64       // fraction of packets that are lost; 1: all
}

// A Route is the path between two ranges of addresses. A host with many addresses can stand for many locations.
type Route struct {
	From, To netip.Prefix
	Path     Path
}

// Between returns the routes between two prefixes, in both directions, each with half the round-trip time.
func Between(a, b netip.Prefix, roundTrip time.Duration, loss float64) []Route {
	p := Path{Delay: roundTrip / 2, Loss: loss}
	return []Route{{a, b, p}, {b, a, p}}
}

// One returns the prefix of a single address.
func One(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// A pair is a source and a destination address.
type pair struct{ from, to netip.Addr }

// A neighborKey identifies an entry in a host's neighbor table.
type neighborKey struct {
	from *Host
	to   netip.Addr
}

// A neighborEntry is the state of a host's neighbor table for one address.
type neighborEntry struct {
	owner *Host // host that has the address
	cut   bool
	paths int              // number of the sender's addresses with a path to it through the proxy
	mac   net.HardwareAddr // MAC address in the table; nil: the host resolves it itself
}

func hostMAC(n int) net.HardwareAddr { return net.HardwareAddr{2, 'k', 'u', 0, byte(n >> 8), byte(n)} }

var (
	proxyMAC  = net.HardwareAddr{2, 'k', 'u', 1, 0, 0}
	nobodyMAC = net.HardwareAddr{2, 'k', 'u', 2, 0, 0}
)

// SetPath routes packets from one host to another through the proxy. The zero Path restores direct delivery.
func (l *Lab) SetPath(from, to *Host, p Path) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setPath(from, from.Addrs, to, to.Addrs, p)
	return l.updateNeighbors(from)
}

// SetPaths sets the paths between all given hosts from a matrix: paths[i][j] is the path from hosts[i] to hosts[j].
func (l *Lab) SetPaths(hosts []*Host, paths [][]Path) error {
	for i, from := range hosts {
		for j, to := range hosts {
			if i == j {
				continue
			}
			if err := l.SetPath(from, to, paths[i][j]); err != nil {
				return err
			}
		}
	}
	return nil
}

// SetRoutes sets paths by address between the existing hosts. If several routes match, the last applies.
func (l *Lab) SetRoutes(routes ...Route) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range routes {
		for _, a := range l.hosts {
			from := a.within(r.From)
			if len(from) == 0 {
				continue
			}
			for _, b := range l.hosts {
				if a != b {
					l.setPath(a, from, b, b.within(r.To), r.Path)
				}
			}
		}
	}
	return l.updateNeighbors(l.hosts...)
}

// setPath stores the path between some addresses of two hosts; mu is held.
func (l *Lab) setPath(a *Host, from []netip.Addr, b *Host, to []netip.Addr, p Path) {
	for _, dest := range to {
		e := l.neighbor(a, b, dest)
		for _, source := range from {
			key := pair{source, dest}
			_, was := l.paths[key]
			switch is := p != (Path{}); {
			case is && !was:
				e.paths++
			case !is && was:
				e.paths--
			}
			l.paths[key] = p
			if p == (Path{}) {
				delete(l.paths, key)
			}
			l.proxy.set(key, p)
		}
	}
}

// neighbor returns a's neighbor table entry for an address of b; mu is held.
func (l *Lab) neighbor(a, b *Host, to netip.Addr) *neighborEntry {
	e := l.neighbors[neighborKey{a, to}]
	if e == nil {
		e = &neighborEntry{owner: b}
		l.neighbors[neighborKey{a, to}] = e
	}
	return e
}

// updateNeighbors writes changes to the hosts' neighbor tables; mu is held.
func (l *Lab) updateNeighbors(hosts ...*Host) error {
	todo := make(map[*Host][]string)
	for h, e := range l.neighbors {
		mac := e.owner.mac
		switch {
		case !slices.Contains(hosts, h.from):
			continue
		case e.cut:
			mac = nobodyMAC
		case e.paths > 0:
			mac = proxyMAC
		case e.mac == nil:
			continue
		}
		if !slices.Equal(mac, e.mac) {
			todo[h.from] = append(todo[h.from], fmt.Sprintf("neigh replace %v lladdr %v nud permanent dev eth0", h.to, mac))
			e.mac = mac
		}
	}
	for host, lines := range todo {
		if err := ipAll(host.space, lines); err != nil {
			return fmt.Errorf("update the neighbor table of %s: %w", host.Name, err)
		}
	}
	return nil
}

// Cut drops all packets between some hosts and others, in both directions.
func (l *Lab) Cut(some, others []*Host) error {
	if err := l.CutOneWay(some, others); err != nil {
		return err
	}
	return l.CutOneWay(others, some)
}

// CutOneWay drops all packets from some hosts to others, but not those in the other direction.
func (l *Lab) CutOneWay(some, others []*Host) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range some {
		for _, b := range others {
			if a == b {
				continue
			}
			for _, to := range b.Addrs {
				l.neighbor(a, b, to).cut = true
			}
		}
	}
	return l.updateNeighbors(some...)
}

// Heal undoes all cuts.
func (l *Lab) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.neighbors {
		e.cut = false
	}
	return l.updateNeighbors(l.hosts...)
}

// Bandwidth limits what the host sends and what it receives, each to bits per second; 0 removes the limit.
func (h *Host) Bandwidth(bits int) error {
	for _, end := range [][2]string{{h.space, "eth0"}, {h.lab.hub, h.port}} {
		args := []string{"-n", end[0], "qdisc", "replace", "dev", end[1], "root", "tbf", "rate", strconv.Itoa(bits) + "bit",
			"burst", strconv.Itoa(max(bits/8/100, 4<<10)), "latency", "300ms"}
		if bits == 0 {
			args = []string{"-n", end[0], "qdisc", "replace", "dev", end[1], "root", "noqueue"}
		}
		if err := program("tc", args...); err != nil {
			return fmt.Errorf("bandwidth of %s: %w", h.Name, err)
		}
	}
	return nil
}
