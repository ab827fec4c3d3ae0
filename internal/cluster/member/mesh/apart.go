package mesh

import (
	"slices"

	"kumo/internal/cluster/strategy"
)

// Where fewer nodes are known than a host has backups, what is claimed lies on few disks. When others come they hear
// first what is open, and then only what is done: else they would not fetch a page again whose links these disks alone
// have, and lose the links with them.

// apartness is what a node goes by that knows, or knew, too few others.
type apartness struct {
	few  bool             // fewer nodes were known than a host has backups
	with []strategy.Node  // the others of these: they know what this one does
	owed map[string]*owed // hosts of which others have come who do not know what is open; nil: nobody has
	// of the round over these hosts that is under way
	queue   []string
	telling int
	failed  bool
	resting bool
}

// An owed host is one of which others are to be told what is open.
type owed struct {
	has  []strategy.Node // who were
	done bool            // all backups, as they were known then
	anew bool            // one has not answered, or is none: who they are is found anew
}

// mostTelling is of how many hosts others are told at once.
const mostTelling = 256

// mayHear reports whether a node may be told what is done.
func (m *Machine) mayHear(n strategy.Node) bool {
	return !m.apart.few || n == m.cfg.Self || slices.Contains(m.apart.with, n)
}

// holdsBack reports whether a finder may not forget links that are done. Where nobody has come it may, whoever it is: a
// node that leaves is not around any more.
func (m *Machine) holdsBack(finder strategy.Node) bool {
	return m.apart.owed != nil && !m.mayHear(finder)
}

// meet notes who is around.
func (m *Machine) meet() {
	a, others := &m.apart, m.cfg.Overlay.Neighbours()
	if !a.few {
		if a.few = len(others)+1 < m.cfg.Backups; a.few {
			a.with = slices.Clone(others)
		}
		return
	}
	a.with = slices.DeleteFunc(a.with, func(n strategy.Node) bool { return !slices.Contains(others, n) })
	if a.owed != nil || !m.strangers() {
		return
	}
	a.owed = make(map[string]*owed, len(m.hosts))
	for host := range m.hosts {
		a.owed[host] = &owed{}
	}
	m.tellOwed()
}

// strangers reports whether others are around who may not know what this node does.
func (m *Machine) strangers() bool { return len(m.apart.with) < len(m.cfg.Overlay.Neighbours()) }

// parted notes that a node is gone: it hears nothing until it is back.
func (a *apartness) parted(n strategy.Node) {
	other := func(o strategy.Node) bool { return o == n }
	a.with = slices.DeleteFunc(a.with, other)
	for _, o := range a.owed {
		o.has = slices.DeleteFunc(o.has, other)
	}
}

// tellOwed tells others what is open, until all do know it who are backups then.
func (m *Machine) tellOwed() {
	a := &m.apart
	if a.owed == nil || a.resting {
		return
	}
	if len(a.queue) == 0 && a.telling == 0 {
		if a.queue = m.stillOwed(); len(a.queue) == 0 || !m.strangers() {
			m.toldAll()
			return
		}
		if a.failed {
			a.failed, a.resting = false, true
			m.after(pause, func() {
				a.resting = false
				m.tellOwed()
			})
			return
		}
	}
	for len(a.queue) > 0 && a.telling < mostTelling {
		host := a.queue[0]
		a.queue = a.queue[1:]
		if o := a.owed[host]; o != nil {
			a.telling++
			m.tellHost(host, o, func(told bool) {
				a.telling--
				a.failed = a.failed || !told
				m.tellOwed()
			})
		}
	}
}

// stillOwed are hosts of which backups lack what is open.
func (m *Machine) stillOwed() (hosts []string) {
	for _, host := range sortedKeys(m.apart.owed) {
		o := m.apart.owed[host]
		nodes, exact := m.near(m.backup(host), m.cfg.Backups)
		switch {
		case m.hosts[host] == nil: // nothing is open any more
			delete(m.apart.owed, host)
		case !o.done || exact && len(m.lacking(o, nodes)) > 0:
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// lacking are those of some nodes that may not know what is open of a host.
func (m *Machine) lacking(o *owed, nodes []strategy.Node) []strategy.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool {
		return m.mayHear(n) || slices.Contains(o.has, n)
	})
}

// tellHost tells a host's backups what is open.
func (m *Machine) tellHost(host string, o *owed, over func(told bool)) {
	m.find(m.backup(host), o.anew, func(nodes []strategy.Node) {
		lacking := m.lacking(o, nodes)
		m.giveOpen(host, "", lacking, func(got []strategy.Node) {
			o.has = append(o.has, got...)
			o.done = len(nodes) > 0 && len(got) == len(lacking)
			o.anew = !o.done
			over(o.done)
		})
	})
}

// toldAll lets those hear what is done who are there now.
func (m *Machine) toldAll() {
	others := m.cfg.Overlay.Neighbours()
	m.apart = apartness{few: len(others)+1 < m.cfg.Backups}
	if m.apart.few {
		m.apart.with = slices.Clone(others)
	}
	m.sweepSoon()
}

// withhold is what a node may hear of the states of links: those that are done it is to ask for again.
func (m *Machine) withhold(to strategy.Node, states []State) []State {
	if m.mayHear(to) || !slices.Contains(states, Done) {
		return states
	}
	states = slices.Clone(states)
	for i, s := range states {
		if s == Done {
			states[i] = withheld
		}
	}
	return states
}
