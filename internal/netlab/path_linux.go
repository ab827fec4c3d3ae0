package netlab

import (
	"fmt"
	"net"
	"strconv"
	"time"
)

// A Path is what happens to packets from one host to another.
type Path struct {
	Delay  time.Duration
	Jitter time.Duration // up to so much more, drawn for each; packets stay in order
	Loss   float64       // share of the packets that are lost
}

// A way is how packets of a pair go.
type way struct {
	cut  bool
	path Path
}

func hostMAC(n byte) net.HardwareAddr { return net.HardwareAddr{2, 'k', 'u', 0, 0, n} }

var (
	proxyMAC  = net.HardwareAddr{2, 'k', 'u', 0, 1, 0}
	nobodyMAC = net.HardwareAddr{2, 'k', 'u', 0, 2, 0}
)

// SetPath sends what goes from one host to another through the proxy; the zero Path, past it.
func (l *Lab) SetPath(from, to *Host, p Path) error {
	return l.change([]*Host{from}, []*Host{to}, func(w *way) { w.path = p })
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

// Cut loses whatever goes from one of some hosts to one of others, and back.
func (l *Lab) Cut(some, others []*Host) error {
	if err := l.CutOneWay(some, others); err != nil {
		return err
	}
	return l.CutOneWay(others, some)
}

// CutOneWay loses whatever goes from one of some hosts to one of others, and nothing that comes back.
func (l *Lab) CutOneWay(some, others []*Host) error {
	return l.change(some, others, func(w *way) { w.cut = true })
}

// Heal takes all cuts back.
func (l *Lab) Heal() error {
	l.mu.Lock()
	hosts := l.others(nil)
	l.mu.Unlock()
	return l.change(hosts, hosts, func(w *way) { w.cut = false })
}

// change changes the ways from each of some hosts to each of others.
func (l *Lab) change(from, to []*Host, f func(w *way)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range from {
		for _, b := range to {
			if a == b {
				continue
			}
			if err := l.route(a, b, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *Lab) route(a, b *Host, f func(w *way)) error {
	for _, dest := range b.Addrs {
		key := pair{a.Addr(), dest}
		before := l.ways[key]
		w := before
		f(&w)
		if w == before {
			continue
		}
		l.ways[key] = w
		mac := b.mac
		switch {
		case w.cut:
			mac = nobodyMAC
		case w.path != Path{}:
			mac = proxyMAC
		}
		for _, source := range a.Addrs {
			l.proxy.set(pair{source, dest}, w.path)
		}
		if err := ip("-n", a.space, "neigh", "replace", dest.String(), "lladdr", mac.String(), "nud", "permanent", "dev", "eth0"); err != nil {
			return fmt.Errorf("from %s to %s: %w", a.Name, b.Name, err)
		}
	}
	return nil
}

// Bandwidth limits what the host sends and what it receives, each to so many bits a second; 0 takes that back.
func (h *Host) Bandwidth(bits int) error {
	for _, end := range [][2]string{{h.space, "eth0"}, {h.lab.hub, h.port}} {
		args := []string{"-n", end[0], "qdisc", "replace", "dev", end[1], "root", "tbf", "rate", strconv.Itoa(bits) + "bit",
			"burst", strconv.Itoa(max(bits/8/100, 32<<10)), "latency", "300ms"}
		if bits == 0 {
			args = []string{"-n", end[0], "qdisc", "replace", "dev", end[1], "root", "noqueue"}
		}
		if err := program("tc", args...); err != nil {
			return fmt.Errorf("bandwidth of %s: %w", h.Name, err)
		}
	}
	return nil
}
