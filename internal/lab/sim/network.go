package sim

import (
	"math"
	"slices"
	"time"
)

// registrySite stands for the registry where machine indexes are expected.
const registrySite = -1

// A network carries messages between machines. It delays, reorders, duplicates and drops them.
type network struct {
	k          *kernel
	latency    latency
	bandwidth  float64 // bytes per second between two machines
	loss       float64 // share of messages lost, apart from partitions
	dup        float64
	slowdown   float64 // factor on all latencies
	partitions []*partition
}

// A partition isolates some machines from the rest, which includes the registry: in one direction or both.
type partition struct {
	isolated     map[int]bool // the machines on the other side
	out, in      bool         // whether messages from there, and to there, are lost
	registryOnly bool         // only messages with the registry are lost
}

// blocks reports whether the partition blocks messages in this direction.
func (c *partition) blocks(from, to int) bool {
	if c.registryOnly && from != registrySite && to != registrySite {
		return false
	}
	a, b := c.isolated[from], c.isolated[to]
	return a != b && (a && c.out || b && c.in)
}

func (n *network) blocked(from, to int) bool {
	return len(n.partitions) > 0 && slices.ContainsFunc(n.partitions, func(c *partition) bool {
		return c.blocks(from,
			to)
	})
}

// reaches reports whether a machine can exchange messages with the registry.
func (n *network) reaches(machine int) bool {
	return !n.blocked(machine, registrySite) && !n.blocked(registrySite, machine)
}

func (n *network) heal(c *partition) {
	n.partitions = slices.DeleteFunc(n.partitions, func(x *partition) bool { return x == c })
}

func (n *network) delay(from, to, bytes int) time.Duration {
	base := float64(n.latency.between(from, to)) * n.slowdown
	return time.Duration(base*(1+0.1*n.k.rng.ExpFloat64()) + float64(bytes)/n.bandwidth*1e9)
}

// drawTransit draws whether a message arrives, provided no new partition blocks it, and how long it takes.
func (n *network) drawTransit(from, to, bytes int) (takes time.Duration, comes bool) {
	if n.blocked(from, to) || n.k.chance(n.loss) {
		return 0, false
	}
	return n.delay(from, to, bytes), true
}

// send calls arrive for each copy of a message that arrives: 0, 1 or 2.
func (n *network) send(from, to, bytes int, arrive func()) {
	copies := 1
	if n.k.chance(n.dup) {
		copies = 2
	}
	for range copies {
		if takes, comes := n.drawTransit(from, to, bytes); comes {
			n.k.after(takes, func() {
				if !n.blocked(from, to) {
					arrive()
				}
			})
		}
	}
}

// A latency gives the one-way time of a message between two locations.
type latency interface {
	between(from, to int) time.Duration
}

// planeLatency places machines at random on a square map; width is the time along one side.
type planeLatency struct {
	seed  uint64
	least time.Duration
	width time.Duration
}

func (p planeLatency) at(place int) (x, y float64) {
	h := hash(p.seed, 3, uint64(place+1))
	return float64(h>>32) / (1 << 32), float64(h&0xffffffff) / (1 << 32)
}

func (p planeLatency) between(from, to int) time.Duration {
	ax, ay := p.at(from)
	bx, by := p.at(to)
	return p.least + time.Duration(math.Hypot(ax-bx, ay-by)*float64(p.width))
}
