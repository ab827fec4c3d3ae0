package mesh

import (
	"slices"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// finds are look-ups, so many at once.
type finds struct {
	waiting map[xor.ID][]func([]strategy.Node)
	running map[xor.ID]bool
	anew    map[xor.ID]bool
	queue   []xor.ID
}

func (f *finds) init() {
	f.waiting, f.running, f.anew = map[xor.ID][]func([]strategy.Node){}, map[xor.ID]bool{}, map[xor.ID]bool{}
}

// find calls f with the live nodes closest to an id, at once if they are known; with none if nobody answers. With anew
// what was found before has turned out to be no more so.
func (m *Machine) find(id xor.ID, anew bool, f func([]strategy.Node)) {
	if nodes, exact := m.near(id, m.cfg.Backups); exact {
		f(nodes)
		return
	}
	m.lookUp(id, anew, f)
}

// lookUp asks other nodes, also where this one knows all: of those that are named it learns the addresses.
func (m *Machine) lookUp(id xor.ID, anew bool, f func([]strategy.Node)) {
	if anew {
		m.finds.anew[id] = true
	}
	if m.finds.waiting[id] == nil {
		m.finds.queue = append(m.finds.queue, id)
	}
	m.finds.waiting[id] = append(m.finds.waiting[id], f)
	m.runFinds()
}

func (m *Machine) runFinds() {
	f := &m.finds
	for len(f.running) < m.cfg.Finds && len(f.queue) > 0 {
		id := f.queue[0]
		f.queue = f.queue[1:]
		f.running[id] = true
		m.do(Find{ID: id, Want: m.cfg.Backups, Anew: f.anew[id]})
		delete(f.anew, id)
	}
}

func (m *Machine) found(e Found) {
	f := &m.finds
	if !f.running[e.ID] {
		return
	}
	delete(f.running, e.ID)
	delete(f.anew, e.ID)
	waiting := f.waiting[e.ID]
	delete(f.waiting, e.ID)
	for _, g := range waiting {
		g(e.Nodes)
	}
	m.runFinds()
}

// routes are the first backups of hosts, as they were looked up last.
type routes struct {
	first  *bounded.Recent[string, route]
	wanted map[string]bool // hosts that are being looked up
}

type route struct {
	to    strategy.Node
	until time.Time // it is looked up again then: it may be gone
}

const (
	routeFor = 30 * time.Second
	// for so long who has dispatched links of a host, or asked for it, is its first backup without a look-up. It asks
	// again sooner, and is the first to know if it is none any more
	heardFor = 90 * time.Second
)

// First is the node to which links to a host are offered, false if it is not known: Wanted has it looked up.
func (m *Machine) First(host string) (strategy.Node, bool) {
	id := m.backup(host)
	if m.closest(id) {
		return m.cfg.Self, true
	}
	// Where this node is not sure of its place, it would refuse what it offers itself.
	if nodes, exact := m.near(id, 1); exact {
		return nodes[0], nodes[0] != m.cfg.Self
	}
	if g := m.held[host]; g != nil && g.from != "" && m.now.Before(g.heard.Add(heardFor)) {
		return g.from, true
	}
	r, ok := m.routes.first.Get(host)
	return r.to, ok && m.now.Before(r.until)
}

// wanted looks up who is the first backup of hosts. Where that is who was it before, and has refused or not answered,
// links wait as long as the outbox has them wait.
func (m *Machine) wanted(hosts []string) {
	for _, host := range hosts {
		was, routed := m.routes.first.Get(host)
		anew := routed && m.now.Before(was.until) // who that is has refused
		if g := m.held[host]; g != nil {
			anew = anew || !g.heard.IsZero()
			g.heard = time.Time{}
		}
		if m.routes.wanted[host] {
			continue
		}
		m.routes.first.Put(host, route{to: was.to})
		m.routes.wanted[host] = true
		m.find(m.backup(host), anew, func(nodes []strategy.Node) {
			delete(m.routes.wanted, host)
			if len(nodes) == 0 || nodes[0] == m.cfg.Self {
				return
			}
			m.routes.first.Put(host, route{nodes[0], m.now.Add(routeFor)})
			if nodes[0] != was.to {
				m.do(Routed{Hosts: []string{host}})
			}
		})
	}
}

// peers are a host's backups but for this node, the first first, and whether this node is one. They are exact where
// this node is, which knows all around it.
func (m *Machine) peers(host string) (others []strategy.Node, one bool) {
	nodes, _ := m.near(m.backup(host), m.cfg.Backups)
	i := slices.Index(nodes, m.cfg.Self)
	if i < 0 {
		return nodes, false
	}
	return slices.Delete(slices.Clone(nodes), i, i+1), true
}

// compare says which of two nodes is closer to an id.
func (m *Machine) compare(a, b strategy.Node, id xor.ID) int {
	return xor.Compare(m.idOf("node", string(a)), m.idOf("node", string(b)), id)
}
