package sim

import (
	"math"
	"slices"
	"time"
)

// registrySite is the place of the registry, as a machine's number is of the machine.
const registrySite = -1

// A network carries messages between machines: late, twice, in another order, or not at all.
type network struct {
	k          *kernel
	latency    latency
	bandwidth  float64 // bytes a second between two machines
	loss       float64 // share of messages lost, beside cuts
	dup        float64
	slowdown   float64 // how many times longer all takes
	partitions []*partition
}

// A cut is a part of the network that the rest, where the registry is, cannot be reached from, or cannot reach, or
// both.
type partition struct {
	isolated     map[int]bool // the machines cut off
	out, in      bool         // what is sent from there, and to there, is lost
	registryOnly bool         // only words with the registry are
}

// blocks reports whether a cut is between two places, in this direction.
func (c *partition) blocks(from, to int) bool {
	if c.registryOnly && from != registrySite && to != registrySite {
		return false
	}
	a, b := c.isolated[from], c.isolated[to]
	return a != b && (a && c.out || b && c.in)
}

func (n *network) blocked(from, to int) bool {
	return len(n.partitions) > 0 && slices.ContainsFunc(n.partitions, func(c *partition) bool { return c.blocks(from, to) })
}

// reaches reports whether a machine can speak with the registry, both ways.
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

// drawTransit draws whether a message comes to the other end, if nothing is cut until then, and how long it takes.
func (n *network) drawTransit(from, to, bytes int) (takes time.Duration, comes bool) {
	if n.blocked(from, to) || n.k.chance(n.loss) {
		return 0, false
	}
	return n.delay(from, to, bytes), true
}

// send lets arrive happen at the other end, never, once or twice.
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

// A latency says how long a message takes between two places, one way.
type latency interface {
	between(from, to int) time.Duration
}

// planeLatency is a made-up latency: places are points on a map as wide as light, or what passes for it, takes a time to
// cross.
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
