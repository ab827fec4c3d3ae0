package mesh

import (
	"cmp"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// What the history has of a host lies at as many nodes as the host has backups. When the nodes around this one are
// others than before, it goes through all hosts of its history: who has become a backup is given all that is known of
// the host, by the first of those who were one before; who is none any more gives it to all, and drops it.

// copies are sweeps over the history.
type copies struct {
	before  []neighbour // this node and those around it when the last sweep began
	began   time.Time   // the last sweep
	died    time.Time   // the last node that died
	running bool
	again   bool // the nodes around have changed since it began
	armed   bool
	old     []neighbour       // before, for the sweep that runs
	proved  time.Time         // who of these came before that was given all; zero: all were
	giving  int               // hosts that are being given
	under   map[string]*given // those, and hosts that are yet to be
	found   int               // hosts that the sweep that runs has found
	next    func()            // reads on, once fewer are
}

const (
	sweepAfter = 2 * time.Second // the nodes around have changed: others come and go at the same time
	maxGiving  = 64
	giveAgain  = 10 * time.Second
	// so long after a node has come it may not have been given all yet by who was to, so that it has not if that one
	// dies
	young = time.Minute
)

// A given is a host that is to be given to others.
type given struct {
	to      []strategy.Node // who are yet to be given it
	has     []strategy.Node // who were
	found   []strategy.Node // its backups, looked up: this node is too far from them to know them all
	busy    bool            // it is being given
	changed bool            // something of it was recorded since that has begun
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
	node  strategy.Node
	id    xor.ID
	since time.Time // it has been around
}

// around are this node and those that are near to it, sorted by distance.
func (m *Machine) around() []neighbour {
	nodes := m.cfg.Overlay.Neighbours()
	since := make(map[strategy.Node]time.Time, len(m.copies.before))
	for _, n := range m.copies.before {
		since[n.node] = n.since
	}
	all := make([]neighbour, 0, len(nodes)+1)
	if !m.leaving {
		all = append(all, neighbour{node: m.cfg.Self, id: m.id})
	}
	for _, n := range nodes {
		at, met := since[n]
		if !met && m.copies.before != nil { // who was there before this node has had time
			at = m.now
		}
		all = append(all, neighbour{n, m.idOf("node", string(n)), at})
	}
	slices.SortFunc(all, func(a, b neighbour) int { return xor.Compare(a.id, b.id, m.id) })
	return all
}

func (m *Machine) sweep() {
	c := &m.copies
	if m.apart.owed != nil { // what is open they are told first
		c.again = true
		return
	}
	before, now, began := c.before, m.around(), c.began
	c.again, c.before, c.began = false, now, m.now
	if slices.EqualFunc(before, now, func(a, b neighbour) bool { return a.node == b.node }) && !m.leaving {
		return
	}
	c.old, c.proved = before, time.Time{}
	if c.died.After(began) {
		c.proved = c.died.Add(-young)
	}
	c.running, c.found = true, 0
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
	old := m.hadAll(id)
	g := m.copies.under[host]
	if g == nil {
		g = &given{}
	}
	others, one := m.heirs(host, g)
	knew := func(n strategy.Node) bool { return slices.Contains(g.has, n) }
	if one {
		knew = func(n strategy.Node) bool { return slices.Contains(old, n) && !slices.Contains(g.to, n) }
		// the first of those who knew it gives it
		for _, n := range others {
			if knew(n) && m.compare(n, m.cfg.Self, id) < 0 {
				return
			}
		}
	}
	to := slices.DeleteFunc(slices.Clone(others), knew)
	if len(to) == 0 {
		return
	}
	m.copies.under[host] = g
	for _, n := range to {
		g.owe(n)
	}
	m.giveTo(host, g)
}

// owe notes that a node is to be given all.
func (g *given) owe(n strategy.Node) {
	if !slices.Contains(g.to, n) {
		g.to = append(g.to, n)
	}
	g.has = slices.DeleteFunc(g.has, func(o strategy.Node) bool { return o == n })
}

// hadAll are those of the old neighbours that were a host's backups, but for those that may not have been given all.
// Who would have been one without these may have dropped it.
func (m *Machine) hadAll(id xor.ID) []strategy.Node {
	c := &m.copies
	var best []neighbour
	for _, o := range c.old {
		i := len(best)
		for i > 0 && xor.Compare(o.id, best[i-1].id, id) < 0 {
			i--
		}
		if i < m.cfg.Backups {
			best = slices.Insert(best, i, o)
			best = best[:min(len(best), m.cfg.Backups)]
		}
	}
	nodes := make([]strategy.Node, 0, len(best))
	for _, b := range best {
		if b.node == m.cfg.Self || c.proved.IsZero() || !b.since.After(c.proved) {
			nodes = append(nodes, b.node)
		}
	}
	return nodes
}

// giveTo gives what is known of a host to those who are yet to be given it, and drops it then if it is the others'
// alone.
func (m *Machine) giveTo(host string, g *given) {
	if g.busy {
		return
	}
	c := &m.copies
	c.giving++
	g.busy, g.changed = true, false
	to := slices.Clone(g.to)
	m.giveFrom(host, "", to, func(got []strategy.Node) {
		c.giving--
		g.busy = false
		g.has = append(g.has, got...)
		g.to = slices.DeleteFunc(g.to, func(n strategy.Node) bool { return slices.Contains(got, n) })
		wait := giveAgain
		if len(got) == len(to) {
			wait = pause
		}
		others, one := m.heirs(host, g)
		m.oweOnly(g, others, one)
		switch {
		case len(g.to) > 0:
			m.after(wait, func() { m.transferAgain(host, g) })
		case one || len(others) == 0:
			delete(c.under, host)
			if h := m.hosts[host]; h != nil {
				h.had = append(h.had, g.has...)
			}
		case m.fewer(len(others)): // others may be back, and there are few to have it
			m.after(wait, func() { m.giveTo(host, g) })
		default:
			delete(c.under, host)
			m.opened(host, 0, 0)
			m.do(Drop{Host: host})
		}
		m.goOn()
	})
}

// heirs are a host's backups but for this node, and whether it is one. Where this node is far from the host, which it was
// near to while others were gone, those that it knows may not be the closest, and refuse: then those count that were
// found.
func (m *Machine) heirs(host string, g *given) (others []strategy.Node, one bool) {
	if others, one = m.peers(host); one || g.found == nil {
		return others, one
	}
	if _, exact := m.near(m.backup(host), m.cfg.Backups); exact {
		return others, false
	}
	return g.found, false
}

// oweOnly has a host given to its backups that have not got it, and to nobody else.
func (m *Machine) oweOnly(g *given, others []strategy.Node, one bool) {
	g.to = slices.DeleteFunc(g.to, func(n strategy.Node) bool { return !slices.Contains(others, n) })
	if one {
		return
	}
	for _, n := range others { // whoever is one must have it before it is dropped here, and all of it
		if g.changed || !slices.Contains(g.has, n) {
			g.owe(n)
		}
	}
}

// transferAgain transfers a host again. A node that is not one of its backups looks the backups up first.
func (m *Machine) transferAgain(host string, g *given) {
	id := m.backup(host)
	if _, one := m.peers(host); one {
		m.giveTo(host, g)
		return
	}
	m.find(id, true, func(nodes []strategy.Node) {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == m.cfg.Self })
		if g.found = nil; len(nodes) > 0 {
			g.found = nodes
		}
		if others, one := m.heirs(host, g); !g.busy {
			m.oweOnly(g, others, one)
		}
		m.giveTo(host, g)
	})
}

// giveFrom gives some nodes a piece of what is known of a host, and then the rest. over says who has got all of it.
func (m *Machine) giveFrom(host, from string, to []strategy.Node, over func(got []strategy.Node)) {
	to = slices.DeleteFunc(slices.Clone(to), func(n strategy.Node) bool { return !m.mayHear(n) })
	m.tellFrom(host, from, true, to, over)
}

// giveOpen does so with what is open.
func (m *Machine) giveOpen(host, from string, to []strategy.Node, over func(got []strategy.Node)) {
	m.tellFrom(host, from, false, to, over)
}

func (m *Machine) tellFrom(host, from string, all bool, to []strategy.Node, over func(got []strategy.Node)) {
	if len(to) == 0 {
		over(nil)
		return
	}
	m.read(host, from, all, func(k Known) {
		left, target := 1, strategy.Node("")
		if h := m.hosts[host]; h != nil {
			target = cmp.Or(h.target, h.before)
		}
		var got []strategy.Node
		ended := func() {
			if left--; left > 0 {
				return
			}
			switch {
			case k.Next == "":
				over(got)
			case all:
				m.giveFrom(host, k.Next, got, over)
			default:
				m.giveOpen(host, k.Next, got, over)
			}
		}
		if len(k.Links) == 0 {
			got = to
			ended()
			return
		}
		for _, n := range to {
			left++
			it := item{kind: itemStore, host: host, links: k.Links, node: target}
			if all {
				it.number = itemGiven
			}
			m.post(n, it, func(_ strategy.Node, r *reply) {
				if r != nil && r.code == replyYes {
					got = append(got, n)
				}
				ended()
			})
		}
		ended()
	})
}
