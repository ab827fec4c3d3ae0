package quorum

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// oneOf is a function that says of which hosts the given transfers were.
func (m *Member) oneOf(gone []member.Transfer) member.Gone {
	gone = slices.Clone(gone)
	went := make([]destination, len(gone))
	for i, t := range gone {
		went[i] = m.places[t.Epoch].of(t.From)
	}
	return func(host string, came uint64) bool {
		for i, to := range went {
			if came < gone[i].Epoch && to(host) == gone[i].To {
				return true
			}
		}
		return false
	}
}

// forget forgets what is not the exporting node's, now that all of it came whole.
func (m *Member) forget(e *export) member.Forget {
	f := member.Forget{From: e.from, Epoch: e.epoch}
	for _, to := range sortedNodes(e.flows) {
		f.Whole = append(f.Whole, member.Transfer{From: e.from, To: to, Epoch: e.epoch})
	}
	if owner := m.ownerOf(e); e.moved {
		f.Gone = func(host string, came uint64) bool { return came < f.Epoch && owner(host) != "" }
	}
	return f
}

// ownerOf is a function that says to whom hosts go that an export has; "" where they stay.
func (m *Member) ownerOf(e *export) destination { return m.places[e.epoch].of(e.from) }

func (m *Member) forgotten(f member.Forgotten) {
	e := m.exports[f.From]
	if e == nil || e.epoch != f.Epoch {
		return
	}
	switch e.stage {
	case clearing:
		m.note(e.from, e.gone)
		e.gone, e.stage = nil, reading
	case forgetting:
		m.note(e.from, m.forget(e).Whole)
		e.stage = releasing
	}
}

// note keeps which transfers are done with: what came later to the one who forgot is not meant when they are heard of
// again.
func (m *Member) note(from strategy.Node, whole []member.Transfer) {
	if g := m.ghosts[from]; g != nil {
		g.forgot = append(g.forgot, whole...)
	} else {
		m.forgot = append(m.forgot, whole...)
	}
}

// isDone is a function that says which transfers from the exporting node are done with.
func (m *Member) isDone(e *export) func(member.Transfer) bool {
	forgot := m.forgot
	if g := m.ghosts[e.from]; g != nil {
		forgot = g.forgot
	}
	return func(t member.Transfer) bool { return slices.Contains(forgot, t) }
}

// release ends an export.
func (m *Member) release(e *export) {
	g := m.ghosts[e.from]
	switch {
	case g != nil && !g.released:
		e.stage = awaiting
		m.do(member.Release{Node: e.from})
	case g == nil && m.table.leaves(e.from):
		e.stage = awaiting
		m.do(member.Flush{Epoch: e.epoch})
	default:
		e.stage = finished
	}
}

func (m *Member) released(r member.Released) {
	if g := m.ghosts[r.Node]; g != nil {
		g.released = true
	}
	if e := m.exports[r.Node]; e != nil && e.stage == awaiting {
		e.stage = finished
	}
}

func (m *Member) flushed(f member.Flushed) {
	if e := m.exports[m.cfg.Self]; e != nil && e.epoch == f.Epoch && e.stage == awaiting {
		e.stage = finished
	}
}

func (m *Member) folded(f member.Folded) {
	if g := m.ghosts[f.Node]; g != nil {
		g.folded, g.arrived, g.forgot = true, f.Arrived, f.Forgot
	}
}
