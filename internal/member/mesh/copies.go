package mesh

import (
	"slices"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/xor"
)

// What the history has of a host lies at as many nodes as the host has backups. When the nodes around this one are
// others than before, it goes through all hosts of its history: who has become a backup is given all that is known of
// the host, by the first of those who were one before; who is none any more gives it to all, and drops it.

// copies are sweeps over the history.
type copies struct {
	before  []neighbour // this node and those around it when the last sweep began
	running bool
	again   bool // the nodes around have changed since it began
	armed   bool
	old     []neighbour       // before, for the sweep that runs
	giving  int               // hosts that are being given
	under   map[string]*given // those
	found   int               // hosts that the sweep that runs has found
	next    func()            // reads on, once fewer are
}

const (
	sweepAfter = 2 * time.Second // the nodes around have changed: others come and go at the same time
	maxGiving  = 64
	giveAgain  = 10 * time.Second
)

// A given is a host that is being given to others.
type given struct {
	times   int
	changed bool // something of it was recorded since it began
}

// sweepSoon begins a sweep after a while.
func (m *Machine) sweepSoon() {
	c := &m.copies
	c.again = true
	if c.running || c.armed {
		return
	}
	c.armed = true
	m.after(sweepAfter, func() {
		c.armed = false
		if c.again && !c.running {
			m.sweep()
		}
	})
}

// A neighbour is a node with its id.
type neighbour struct {
	node strategy.Node
	id   xor.ID
}

// around are this node and those that are near to it, sorted by distance.
func (m *Machine) around() []neighbour {
	nodes := m.cfg.Overlay.Neighbours()
	all := make([]neighbour, 0, len(nodes)+1)
	if !m.leaving {
		all = append(all, neighbour{m.cfg.Self, m.id})
	}
	for _, n := range nodes {
		all = append(all, neighbour{n, m.idOf("node", string(n))})
	}
	slices.SortFunc(all, func(a, b neighbour) int { return xor.Compare(a.id, b.id, m.id) })
	return all
}

func (m *Machine) sweep() {
	c := &m.copies
	c.again, c.running = false, true
	c.old, c.before = c.before, m.around()
	if slices.Equal(c.old, c.before) && !m.leaving {
		c.running = false
		return
	}
	c.found = 0
	m.do(Sweep{})
}

// swept gives hosts to whom they are to be known.
func (m *Machine) swept(e Swept) {
	c := &m.copies
	if !c.running {
		return
	}
	c.found += len(e.Hosts)
	for _, host := range e.Hosts {
		m.give(host)
	}
	c.next = func() {
		if e.Next != "" {
			m.do(Sweep{From: e.Next})
			return
		}
		c.running = false
		if c.again {
			m.sweepSoon()
		}
	}
	m.goOn()
}

// goOn reads the next hosts when few are being given.
func (m *Machine) goOn() {
	c := &m.copies
	if c.giving >= maxGiving || c.next == nil {
		return
	}
	next := c.next
	c.next = nil
	next()
}

// give gives what is known of a host to those who have become its backups.
func (m *Machine) give(host string) {
	id := m.backup(host)
	others, one := m.peers(host)
	old := m.copies.backups(id, m.cfg.Backups)
	to := others
	if one {
		// the first of those who knew it gives it
		for _, n := range others {
			if slices.Contains(old, n) && m.compare(n, m.cfg.Self, id) < 0 {
				return
			}
		}
		to = slices.DeleteFunc(slices.Clone(others), func(n strategy.Node) bool { return slices.Contains(old, n) })
	}
	if len(to) > 0 {
		m.giveTo(host, to)
	}
}

// backups are those of the old neighbours that were a host's backups.
func (c *copies) backups(id xor.ID, n int) []strategy.Node {
	var best []neighbour
	for _, o := range c.old {
		i := len(best)
		for i > 0 && xor.Compare(o.id, best[i-1].id, id) < 0 {
			i--
		}
		if i < n {
			best = slices.Insert(best, i, o)
			best = best[:min(len(best), n)]
		}
	}
	nodes := make([]strategy.Node, len(best))
	for i, b := range best {
		nodes[i] = b.node
	}
	return nodes
}

// giveTo gives what is known of a host to some nodes, again where one does not answer.
func (m *Machine) giveTo(host string, to []strategy.Node) {
	c := &m.copies
	c.giving++
	g := c.under[host]
	if g == nil {
		g = &given{}
		c.under[host] = g
	}
	g.times++
	m.giveFrom(host, "", to, func(silent []strategy.Node) {
		c.giving--
		if g.times--; g.times == 0 {
			delete(c.under, host)
		}
		others, one := m.peers(host)
		silent = slices.DeleteFunc(silent, func(n strategy.Node) bool { return !slices.Contains(others, n) })
		switch {
		case len(silent) > 0:
			m.after(giveAgain, func() { m.giveTo(host, silent) })
		case !one && g.changed: // the new ones do not have all
			m.after(pause, func() { m.give(host) })
		case !one:
			m.opened(host, 0)
			m.do(Drop{Host: host})
		}
		m.goOn()
	})
}

// giveFrom gives a piece of what is known of a host, and then the rest. over says who has not answered.
func (m *Machine) giveFrom(host, from string, to []strategy.Node, over func(silent []strategy.Node)) {
	m.read(host, from, true, func(k Known) {
		left := 1
		var silent []strategy.Node
		ended := func() {
			if left--; left > 0 {
				return
			}
			if k.Next != "" && len(silent) == 0 {
				m.giveFrom(host, k.Next, to, over)
				return
			}
			over(silent)
		}
		for _, n := range to {
			if len(k.Links) > 0 {
				left++
				m.post(n, item{kind: itemStore, host: host, links: k.Links}, func(_ strategy.Node, r *reply) {
					if r == nil || r.code != replyYes {
						silent = append(silent, n)
					}
					ended()
				})
			}
		}
		ended()
	})
}
