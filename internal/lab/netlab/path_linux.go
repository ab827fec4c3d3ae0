package netlab

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"
)

// A Path is what happens to packets from one host to another.
type Path struct {
	Delay  time.Duration
	Jitter time.Duration // up to so much more, drawn for each; packets stay in order
	Loss   float64       // share of the packets that are lost; 1: all
}

// A Route is the path from some addresses to others: hosts of many addresses are many places.
type Route struct {
	From, To netip.Prefix
	Path     Path
}

// Between are the routes there and back of a pair of prefixes, each with half of a round trip.
func Between(a, b netip.Prefix, roundTrip time.Duration, loss float64) []Route {
	p := Path{Delay: roundTrip / 2, Loss: loss}
	return []Route{{a, b, p}, {b, a, p}}
}

// One is the prefix of one address.
func One(addr netip.Addr) netip.Prefix { return netip.PrefixFrom(addr, addr.BitLen()) }

// A pair is two addresses, in one direction.
type pair struct{ from, to netip.Addr }

// A hop is what a host sends to an address.
type neighborKey struct {
	from *Host
	to   netip.Addr
}

// An entry is what the host's table of neighbours has to say of it.
type neighborEntry struct {
	owner *Host // of the address
	cut   bool
	paths int              // how many of the sender's addresses have a path there that is not plain
	mac   net.HardwareAddr // nil: the host finds out itself
}

func hostMAC(n int) net.HardwareAddr { return net.HardwareAddr{2, 'k', 'u', 0, byte(n >> 8), byte(n)} }

var (
	proxyMAC  = net.HardwareAddr{2, 'k', 'u', 1, 0, 0}
	nobodyMAC = net.HardwareAddr{2, 'k', 'u', 2, 0, 0}
)

// SetPath sends what goes from one host to another through the proxy; the zero Path, past it.
func (l *Lab) SetPath(from, to *Host, p Path) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setPath(from, from.Addrs, to, to.Addrs, p)
	return l.updateNeighbors(from)
}

// SetPaths sets the paths between all hosts given, by a matrix: paths[i][j] from hosts[i] to hosts[j].
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

// SetRoutes sets paths by address, between the hosts that are there: of several that fit the last counts.
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

// setPath notes a path for some addresses of two hosts; mu is held.
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

// hop is the entry for an address of b in the table of a; mu is held.
func (l *Lab) neighbor(a, b *Host, to netip.Addr) *neighborEntry {
	e := l.neighbors[neighborKey{a, to}]
	if e == nil {
		e = &neighborEntry{owner: b}
		l.neighbors[neighborKey{a, to}] = e
	}
	return e
}

// updateNeighbors writes what has changed into the hosts' tables of neighbours; mu is held.
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
			return fmt.Errorf("tell %s where to send: %w", host.Name, err)
		}
	}
	return nil
}

// Cut loses whatever goes from one of some hosts to one of others, and back.
func (l *Lab) Cut(some, others []*Host) error {
	if err := l.CutOneWay(some, others); err != nil {
		return err
	}
	return l.CutOneWay(others, some)
}

// CutOneWay loses whatever goes from one of some hosts to one of others, and nothing that comes back.
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

// Heal takes all cuts back.
func (l *Lab) Heal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.neighbors {
		e.cut = false
	}
	return l.updateNeighbors(l.hosts...)
}

// Bandwidth limits what the host sends and what it receives, each to so many bits a second; 0 takes that back.
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
