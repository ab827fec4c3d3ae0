package quorum

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// each calls f with all nodes that may hold something.
func (t *Table) each(f func(strategy.Node)) {
	for _, mem := range t.Members {
		f(mem.Node)
	}
	for _, n := range t.Leaving {
		f(n)
	}
	for _, n := range t.Estates {
		f(n)
	}
}

// ask asks, again and again, what came whole to others. An estate is asked of who folds it.
func (m *Member) ask(e *export) {
	again := !e.askAt.After(m.now)
	if again {
		e.askAt = m.now.Add(m.cfg.Timing.Retry)
	}
	for _, n := range sortedNodes(e.asks) {
		q := askMsg{from: e.from, to: n, epoch: e.epoch}
		whom := n
		if !m.table.part(n) {
			whom = m.table.takeoverNode(n)
		}
		if whom != m.cfg.Self {
			if again {
				m.do(member.Send{To: whom, Data: q.encode()})
			}
		} else if epochs, known := m.cameWhole(q); known {
			m.answer(answerMsg{q, epochs})
		}
	}
}

// cameWhole says under which epochs something came whole from one node to this one, or to one whose estate it folds. It
// is not known while that may change.
func (m *Member) cameWhole(q askMsg) (epochs []uint64, known bool) {
	arrived := m.arrived
	if q.to != m.cfg.Self {
		g := m.ghosts[q.to]
		if g == nil || !g.folded {
			return nil, false
		}
		arrived = g.arrived
	} else if slices.ContainsFunc(m.olds, func(a *arrival) bool { return a.t.From == q.from }) {
		return nil, false
	}
	for _, t := range arrived {
		if t.From == q.from && t.To == q.to && t.Epoch > m.table.Settled {
			epochs = append(epochs, t.Epoch)
		}
	}
	return epochs, true
}

// asked answers a question of another node, if this one knows the answer for good: it has left earlier epochs behind.
func (m *Member) asked(from strategy.Node, q askMsg) {
	if m.table.Epoch < q.epoch {
		return
	}
	if epochs, known := m.cameWhole(q); known {
		m.do(member.Send{To: from, Data: answerMsg{q, epochs}.encode()})
	}
}

func (m *Member) answer(a answerMsg) {
	e := m.exports[a.from]
	if e == nil || e.epoch != a.epoch || !e.asks[a.to] {
		return
	}
	delete(e.asks, a.to)
	for _, epoch := range a.epochs {
		if m.places[epoch] != nil {
			e.gone = append(e.gone, member.Transfer{From: a.from, To: a.to, Epoch: epoch})
		}
	}
}
