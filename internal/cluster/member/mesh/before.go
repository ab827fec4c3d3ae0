package mesh

import (
	"slices"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// Who fetches a host next asks those to stop that may have fetched it before, and takes nothing until they have: a host
// is asked by one node at a time. That takes as long as the host's own answer, at worst, so they are asked again and
// again. Who is asked names another where it knows one that is closer, or to whom it has given the host, and, where it
// has stopped itself, one for whom it waits in its turn: that one is asked, too. So nodes that wait for each other find
// that each has stopped.

// An ask is of a node that may have been a host's target before this one.
type ask struct {
	node   strategy.Node
	silent int // times that it gave no answer
	waits  int // and times that it had stopped, and waited for another
	over   bool
}

const (
	mostSilent = 3 // a node that is not known to have died may be busy only; for a while it is asked once then
	mostWaits  = 8
)

func (g *holding) isAsking() bool {
	return slices.ContainsFunc(g.asks, func(a *ask) bool { return !a.over })
}

// An awaiting is what can be taken once nobody else fetches the host any more.
type awaiting struct {
	answer *prompt
	take   func()
}

// askBefore asks the closest node but this one to stop, if it fetches the host: it may not know yet that this one has
// come. So may the one that the first backup names, where that closest one has just come, too. A closer one that leaves
// may not have stopped yet.
func (m *Machine) askBefore(g *holding, named strategy.Node) {
	nodes, _ := m.near(g.id, 2)
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == m.cfg.Self })
	nodes = append(nodes[:min(len(nodes), 1)], named)
	for _, n := range m.leavers.list(m.now) {
		if m.compare(n, m.cfg.Self, g.id) < 0 {
			nodes = append(nodes, n)
		}
	}
	for _, n := range nodes {
		m.askToo(g, n)
	}
}

// askToo asks one more, if it is not asked.
func (m *Machine) askToo(g *holding, node strategy.Node) {
	if node == "" || node == m.cfg.Self || slices.ContainsFunc(g.asks, func(a *ask) bool { return a.node == node }) {
		return
	}
	a := &ask{node: node}
	g.asks = append(g.asks, a)
	m.ask(g, a)
}

func (m *Machine) ask(g *holding, a *ask) {
	m.post(a.node, item{kind: itemYield, host: g.host}, func(_ strategy.Node, r *reply) {
		if m.held[g.host] != g {
			return
		}
		if r != nil {
			m.owes(g, unpackTiming(r.number))
			g.had = g.had || r.code == replyYes || r.code == replyLater
		}
		if m.isYet(g, a, r) {
			again := func() {
				if m.held[g.host] == g {
					m.ask(g, a)
				}
			}
			if r == nil { // its address may not be known
				m.lookUp(m.idOf("node", string(a.node)), true, func([]strategy.Node) { m.after(pause, again) })
			} else {
				m.after(pause, again)
			}
			return
		}
		a.over = true
		if r != nil && r.code == replyMoved && r.node != "" && !m.view.in[g.host] && len(g.marks) == 0 {
			// it was delegated before this node came, or is with a closer one that this node did not know
			m.balance.away[g.host] = r.node
			m.forgo(g, reply{code: replyMoved, node: r.node})
			return
		}
		if !g.isAsking() {
			m.allHaveStopped(g)
		}
	})
}

// isYet reports whether a node may yet fetch a host, by its answer.
func (m *Machine) isYet(g *holding, a *ask, r *reply) bool {
	switch {
	case r == nil:
		if a.silent++; a.silent == mostSilent {
			m.unheard.note(a.node, m.now)
		}
		return a.silent < mostSilent && !m.mayBeGone(a.node)
	case r.code == replyNo || r.code == replyYes:
		m.askToo(g, r.node)
		return false
	case r.code != replyLater || r.node == m.cfg.Self:
		return false
	case r.node == "":
		return true
	}
	a.waits++
	m.askToo(g, r.node)
	return a.waits < mostWaits
}

// mayBeGone reports whether a node that gives no answer has died, has left, or has given none for long.
func (m *Machine) mayBeGone(n strategy.Node) bool {
	return m.absent.died.has(n, m.now) || m.leavers.has(n, m.now) || m.unheard.has(n, m.now)
}

// allHaveStopped takes what was dispatched meanwhile, or goes on to give the host up.
func (m *Machine) allHaveStopped(g *holding) {
	then, had := g.then, g.had
	g.then, g.had, g.asks = nil, false, nil
	for _, a := range then {
		switch {
		case a.answer.over: // it comes again
		case had: // some of these are done by now
			a.answer.give(reply{code: replyLater})
		default:
			a.take()
		}
	}
	if g.stopping {
		m.say(g)
	}
}

// yield stops to fetch a host for a node that is closer to it.
func (m *Machine) yield(from strategy.Node, it item, answer func(reply)) {
	g := m.held[it.host]
	if to := m.balance.away[it.host]; g == nil && to != "" && to != from {
		answer(reply{code: replyMoved, node: to})
		return
	}
	if g == nil {
		answer(reply{code: replyNo, node: m.closerThanThis(m.target(it.host), from), number: m.owed(it.host).pack()})
		return
	}
	if closer := m.compare(m.cfg.Self, from, g.id) < 0 && !m.leaving; closer && !g.stopping {
		answer(reply{code: replyMoved, node: m.cfg.Self})
		return
	} else if !closer && (g.to == "" || m.compare(from, g.to, g.id) < 0) {
		g.to = from
	}
	g.parted = append(slices.DeleteFunc(g.parted, func(p *prompt) bool { return p.over }), m.promptly(func(r reply) {
		switch {
		case r.code == replyMoved && r.node == from:
			r = reply{code: replyNo}
		case r.code == replyYes && g.to != from:
			r.node = g.to
		}
		answer(r)
	}, func() reply { return g.notYet(from) }))
	if !g.stopping {
		m.stop(g)
	}
}

// closerThanThis is the node but another that is closest to an ID, and closer than this one; empty: none. Who has just
// come may not know it yet.
func (m *Machine) closerThanThis(id xor.ID, but strategy.Node) strategy.Node {
	nodes, _ := m.near(id, 2)
	for _, n := range nodes {
		if n != but && m.compare(n, m.cfg.Self, id) < 0 {
			return n
		}
	}
	return ""
}

// notYet says that this node has not stopped, or for whom it waits itself.
func (g *holding) notYet(from strategy.Node) reply {
	r := reply{code: replyLater}
	if !g.released || g.saying || len(g.marks) > 0 {
		return r
	}
	var others []strategy.Node
	for _, a := range g.asks {
		if a.node == from && !a.over {
			r.node = from
		} else if !a.over {
			others = append(others, a.node)
		}
	}
	if n := len(others); n > 0 { // each in turn
		g.turn++
		r.node = others[g.turn%n]
	}
	return r
}

// forgo ends a holding of which the engine was given nothing yet, and answers those who have asked for the host.
func (m *Machine) forgo(g *holding, r reply) {
	delete(m.held, g.host)
	m.change(outs, g.host, false)
	for _, p := range g.parted {
		p.give(r)
	}
}
