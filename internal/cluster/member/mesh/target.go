package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// The target's part: what is to be fetched, and word of what was.

// A holding is a host of which the engine has something.
type holding struct {
	host     string
	id       xor.ID
	from     strategy.Node // the backup that has dispatched something last, or asked
	heard    time.Time     // when it did
	anew     bool          // a backup has refused, or was silent: who they are is found anew
	stopping bool          // another node is the target now
	to       strategy.Node // who has asked for the host
	marks    []Link        // fetched, and not yet said
	saying   bool          // marks are on their way
	released bool          // the engine has forgotten it
	asks     []*ask        // of nodes that may have been the target before
	then     []awaiting    // what was dispatched meanwhile
	had      bool          // one of them was the target: it has said what it has fetched since
	parted   []*prompt     // answers to who asks that of this node
	turn     int           // of those for whom it waits, when it says for whom
	timing   timed         // as the engine has left it, and who fetched the host before
}

// A lull is how long marks wait for others, so that they go together.
const lull = 300 * time.Millisecond

// hold makes a holding of a host.
func (m *Machine) hold(host string) *holding {
	g := m.held[host]
	if g == nil {
		g = &holding{host: host, id: m.target(host)}
		m.held[host] = g
		if !m.fetches(g) {
			m.stop(g)
		}
	}
	return g
}

// holdsFromBefore gives up a host of which an earlier process has left something, even where it is this node's: others
// may have fetched some of it meanwhile. What is open is dispatched again.
func (m *Machine) holdsFromBefore(host string) {
	if g := m.hold(host); !g.stopping {
		m.stop(g)
	}
}

// fetches reports whether this node is the one to fetch a host.
func (m *Machine) fetches(g *holding) bool {
	return m.closest(g.id) && !m.view.out[g.host] || m.view.in[g.host] && !m.leaving
}

// dispatched takes links that are to be fetched.
func (m *Machine) dispatched(from strategy.Node, it item, answer func(reply)) {
	g := m.held[it.host]
	if g != nil && g.stopping {
		answer(reply{code: replyLater})
		return
	}
	if to := m.balance.away[it.host]; to != "" && m.closest(m.target(it.host)) {
		answer(reply{code: replyMoved, node: to})
		return
	}
	if !m.closest(m.target(it.host)) && !m.view.in[it.host] || m.leaving || len(it.links) == 0 {
		answer(reply{code: replyNo})
		return
	}
	first := g == nil
	g = m.hold(it.host)
	g.from, g.heard = from, m.now
	m.owes(g, unpackTiming(it.number))
	switch {
	case first:
		m.askBefore(g, it.node)
	case g.isAsking():
		m.askToo(g, it.node)
	}
	if g.isAsking() {
		p := m.promptly(answer, later)
		g.then = append(slices.DeleteFunc(g.then, func(a awaiting) bool { return a.answer.over }),
			awaiting{p, func() { m.takeLinks(from, g, it, p.give) }})
		return
	}
	m.takeLinks(from, g, it, answer)
}

// owes notes what a host is owed.
func (m *Machine) owes(g *holding, t Timing) { g.timing = timed{g.timing.now(m.now).with(t), m.now} }

func (m *Machine) takeLinks(from strategy.Node, g *holding, it item, answer func(reply)) {
	if g.stopping || m.held[g.host] != g {
		answer(reply{code: replyLater})
		return
	}
	m.last++
	m.taking[m.last] = func(t Taken) {
		if t.Refused {
			answer(reply{code: replyLater})
			return
		}
		r := reply{code: replyYes, states: make([]State, len(it.links))}
		for i := range r.states {
			if r.states[i] = Dispatched; i < len(t.Done) && t.Done[i] {
				r.states[i] = Done
			}
		}
		if slices.Contains(r.states, Done) && !m.mayHear(from) {
			r = reply{code: replyLater}
		}
		answer(r)
	}
	m.do(Take{ID: m.last, Host: it.host, Links: it.links, Timing: g.timing.now(m.now)})
}

// checked says whether a host is this node's.
func (m *Machine) checked(from strategy.Node, it item, answer func(reply)) {
	g := m.held[it.host]
	to := m.balance.away[it.host]
	if g != nil {
		g.from, g.heard = from, m.now
	}
	switch {
	case g == nil && to != "":
		answer(reply{code: replyMoved, node: to})
	case g == nil:
		answer(reply{code: replyNo})
	case g.stopping || m.cfg.Waits(it.host) || len(g.marks) > 0 || g.saying:
		answer(reply{code: replyYes})
	default:
		answer(reply{code: replyIdle})
	}
}

// finished notes what was fetched, to say it with what else is.
func (m *Machine) finished(e Finished) {
	g := m.hold(e.Host)
	first := len(g.marks) == 0
	for _, h := range e.Hashes {
		g.marks = append(g.marks, Link{Hash: h, State: Done})
	}
	if first && !g.saying {
		m.after(lull, func() { m.say(g) })
	}
}

// say tells the first backup what was fetched.
func (m *Machine) say(g *holding) {
	if g.saying || m.held[g.host] != g {
		return
	}
	if len(g.marks) == 0 {
		m.part(g)
		return
	}
	g.saying = true
	n := min(len(g.marks), maxItem)
	links := slices.Clone(g.marks[:n])
	m.toFirst(g, item{kind: itemMarks, host: g.host, links: links}, func() {
		g.saying = false
		g.marks = slices.Delete(g.marks, 0, n)
		m.say(g)
	})
}

// toFirst posts an item to the first backup of a host, whoever that is, until it has taken it.
func (m *Machine) toFirst(g *holding, it item, taken func()) { m.toBackup(g, it, 0, taken) }

// toBackup does the same. What is fetched any backup takes: where the first does not answer the next is told.
func (m *Machine) toBackup(g *holding, it item, which int, taken func()) {
	send := func(to strategy.Node) {
		if it.kind == itemMarks && !m.mayHear(to) {
			g.from, g.anew = "", true
			m.after(pause, func() { m.toBackup(g, it, 0, taken) })
			return
		}
		m.post(to, it, func(_ strategy.Node, r *reply) {
			switch {
			case r != nil && r.code == replyYes:
				taken()
			case r == nil && it.kind == itemMarks:
				g.from, g.anew = "", true
				m.toBackup(g, it, which+1, taken)
			default:
				g.from, g.anew = "", true
				m.after(pause, func() { m.toBackup(g, it, 0, taken) })
			}
		})
	}
	if g.from != "" {
		send(g.from)
		return
	}
	m.find(m.backup(g.host), g.anew, func(nodes []strategy.Node) {
		g.anew = false
		if which >= len(nodes) {
			m.after(pause, func() { m.toBackup(g, it, 0, taken) })
			return
		}
		send(nodes[which])
	})
}

// moveHeld stops to fetch hosts that are another node's now.
func (m *Machine) moveHeld() {
	for _, host := range slices.Sorted(maps.Keys(m.held)) {
		if g := m.held[host]; !g.stopping && !m.fetches(g) {
			m.stop(g)
		}
	}
}

// stopAll gives up all that is fetched here: others have fetched it, perhaps. What is left the first backups dispatch
// again.
func (m *Machine) stopAll() {
	for _, host := range sortedKeys(m.held) {
		if g := m.held[host]; !g.stopping {
			m.stop(g)
		}
	}
}

// stop has the engine give a host up.
func (m *Machine) stop(g *holding) {
	g.stopping = true
	m.change(outs, g.host, true)
	m.do(Release{Host: g.host})
}

func outs(v *View) *map[string]bool { return &v.out }

// released says what was fetched of a host that was given up, and then who is to fetch it.
func (m *Machine) released(e Released) {
	if g := m.held[e.Host]; g != nil && g.stopping {
		g.released = true
		m.owes(g, e.Timing)
		m.say(g)
	}
}

// part ends a holding that was given up, once all have stopped that may have fetched the host before: who fetches it
// next may know of this node alone.
func (m *Machine) part(g *holding) {
	if !g.released || g.isAsking() {
		return
	}
	g.saying = true
	m.find(g.id, true, func(nodes []strategy.Node) {
		timing := g.timing.now(m.now).pack()
		it := item{kind: itemMoved, host: g.host, number: timing}
		if it.node = g.to; it.node == "" && len(nodes) > 0 {
			it.node = nodes[0]
		}
		m.toFirst(g, it, func() {
			delete(m.held, g.host)
			m.change(outs, g.host, false)
			if g.timing.Wait > 0 { // who has been told to ask later still wants to know
				m.timings.Put(g.host, g.timing)
			}
			for _, p := range g.parted {
				p.give(reply{code: replyYes, number: timing})
			}
		})
	})
}

// sortedKeys are the keys of a map in order, so that a run can be repeated.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
