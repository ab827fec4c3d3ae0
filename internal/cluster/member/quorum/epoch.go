package quorum

import (
	"cmp"
	"errors"
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// tableEntry is told of the table by the watch.
func (m *Member) tableEntry(e member.Entry) {
	if e.Revision <= m.tableRev {
		return
	}
	if e.Value == nil {
		m.fail("the table of members is gone from the registry")
		return
	}
	t, err := m.cfg.Parse(e.Value)
	if err != nil {
		m.fail("%w", err)
		return
	}
	m.setTable(t, e.Revision)
}

func (m *Member) wroteTable(w member.Wrote) {
	m.tableBusy = false
	m.proposeAt = m.now.Add(m.cfg.Timing.Beat / 4) // the watch tells what there is
	if errors.Is(w.Err, member.ErrStale) {
		m.late++
		m.stagger()
	}
}

// setTable takes over what the registry has.
func (m *Member) setTable(t *Table, rev uint64) {
	old := m.table
	m.table, m.tableRev = t, rev
	if t.Layout != m.cfg.Layout {
		m.fail("this cluster works with %q, and this node with %q: all nodes of a crawl need the same version and settings",
			t.Layout, m.cfg.Layout)
		return
	}
	if m.phase == joining && m.part() {
		m.enter()
		return
	}
	if m.phase == joining {
		m.guardUp()
	}
	if old == nil || m.phase != in {
		return
	}
	switch was := old.part(m.cfg.Self); {
	case was && !m.part() && old.leaves(m.cfg.Self) && !t.isEstate(m.cfg.Self):
		m.left()
		return
	case was && !m.part():
		m.lost("the others have given it up for dead")
		return
	}
	if t.Settled != old.Settled {
		m.settled() // first: a new epoch may have come in the same look
	}
	if t.Epoch != old.Epoch {
		m.newEpoch()
	}
	m.publish()
}

// settled forgets what was needed only while an earlier epoch was not settled.
func (m *Member) settled() {
	s := m.table.Settled
	old := func(t member.Transfer) bool { return t.Epoch <= s }
	m.arrived, m.forgot = slices.DeleteFunc(m.arrived, old), slices.DeleteFunc(m.forgot, old)
	for e := range m.places {
		if e < s {
			delete(m.places, e)
		}
	}
	clear(m.exports)
	clear(m.ghosts)
	for n := range m.records {
		if n != m.cfg.Self {
			delete(m.records, n)
		}
	}
	m.has, m.booked = max(m.has, s), max(m.booked, s)
	m.gather()
	m.do(member.Settled{Epoch: s})
	m.sweep()
}

// sweep removes the leases of the dead, and their moves, once all is settled.
func (m *Member) sweep() {
	if guards := m.table.guards(); len(guards) == 0 || guards[0].Node != m.cfg.Self {
		return
	}
	for _, n := range sortedNodes(m.peers) {
		if p := m.peers[n]; p.lease.Revoked && !m.table.part(n) {
			m.do(member.Write{Key: leaseKey(n), Revision: p.rev})
			if p.lease.Batch != 0 {
				m.do(member.Write{Key: movesKey(n), Revision: p.lease.Batch})
			}
		}
	}
}

// left ends a member that has nothing any more.
func (m *Member) left() {
	m.do(member.Write{Key: leaseKey(m.cfg.Self), Revision: m.lease.rev})
	if m.moving.revision != 0 {
		m.do(member.Write{Key: movesKey(m.cfg.Self), Revision: m.moving.revision})
	}
	m.end(member.Left{})
}

// newEpoch places hosts as the new list of members has it, stops what is another's now, and begins anew to hand it
// over.
func (m *Member) newEpoch() {
	t := m.table
	for e := t.Settled; e <= t.Epoch; e++ {
		if m.places[e] == nil {
			m.places[e] = m.place(e)
		}
	}
	m.has = max(m.has, t.Settled)
	m.forsake()
	m.movesTaken()
	m.outdate()
	m.nextExports()
	m.guardUp()
	m.expect()
	m.arrive()
	m.publish() // before it is asked whether what is another's under it has come to rest
	if e := m.exports[m.cfg.Self]; e != nil {
		m.do(member.Drain{Epoch: t.Epoch, Of: m.drains()})
	}
}

// drains says of which hosts a member waits for requests, where it keeps all but a few: a server that is slow to answer
// for another host that is not this node's any more does not hold the epoch up. Nil: of all that are not its own.
func (m *Member) drains() func(string) bool {
	if m.cfg.Place != nil || !m.table.has(m.cfg.Self) || !m.knowsMoves(m.cfg.Self) {
		return nil
	}
	to := m.places[m.table.Epoch].of(m.cfg.Self)
	return func(host string) bool { return to(host) != "" }
}

// watch watches the table, this node's lease and those of some others, or all, and the moves that it has to know.
func (m *Member) watch(leases []strategy.Node) {
	keys := []string{TableKey, LeasePrefix}
	if !m.guard {
		keys[1] = leaseKey(m.cfg.Self)
		for _, n := range leases {
			keys = append(keys, leaseKey(n))
		}
	}
	keys = append(keys, movesKey(m.cfg.Self))
	for _, n := range sortedNodes(m.ghosts) {
		if m.table.moves(n) != nil {
			keys = append(keys, movesKey(n))
		}
	}
	m.do(member.Watch{Keys: keys})
}

// guardUp sees to it that the leases are watched that are this node's to watch.
func (m *Member) guardUp() {
	if m.table == nil {
		return
	}
	guards := m.table.guards()
	m.guard = slices.ContainsFunc(guards, func(g strategy.Member) bool { return g.Node == m.cfg.Self })
	m.scanAt = m.now.Add(m.cfg.Timing.TTL)
	var leases []strategy.Node // that are watched if this is no guard
	for _, g := range guards {
		if g.Node != m.cfg.Self {
			leases = append(leases, g.Node)
		}
	}
	if twin := m.namesake(); m.phase == joining && twin != "" {
		leases = append(leases, twin)
	}
	m.watch(leases)
	clear(m.behind)
	clear(m.dead)
	clear(m.offers)
	for n, p := range m.peers {
		switch {
		case !m.guard && !slices.Contains(leases, n):
			delete(m.peers, n)
		case p.lease.Revoked:
			m.markDead(n)
		}
	}
	if !m.guard {
		return
	}
	m.offered(m.cfg.Self, &m.lease.said.Proposal)
	for n, p := range m.peers {
		m.offered(n, &p.lease.Proposal)
	}
	note := func(n strategy.Node) {
		if p := m.peers[n]; n != m.cfg.Self && (p == nil || p.lease.Done < m.table.Epoch) {
			m.behind[n] = true
		}
	}
	for _, mem := range m.table.Members {
		note(mem.Node)
	}
	for _, n := range m.table.Leaving {
		note(n)
	}
}

// propose writes the table that there should be, if it is another.
func (m *Member) propose() {
	if m.tableBusy || m.proposeAt.After(m.now) || !m.lease.until.After(m.now) {
		return
	}
	t := m.wanted()
	if t == nil {
		return
	}
	m.tableBusy = true
	m.do(member.Write{Key: TableKey, Value: t.Encode(), Revision: m.tableRev})
}

// wanted is the table as it should be now, nil if it is so: first who died goes, then what is settled is said to be,
// then this node joins or leaves.
func (m *Member) wanted() *Table {
	switch {
	case m.table == nil:
		t := &Table{Epoch: 1, Settled: 1, Layout: m.cfg.Layout}
		t.Members = []strategy.Member{{Node: m.cfg.Self, Slot: m.slot(nil)}}
		return t
	case len(m.dead) > 0:
		t := m.table.clone()
		dead := sortedNodes(m.dead)
		t.remove(dead...)
		t.Leaving = slices.DeleteFunc(t.Leaving, func(n strategy.Node) bool { return slices.Contains(dead, n) })
		t.Estates = append(t.Estates, dead...)
		return t
	case m.phase == joining && (m.table.settled() || len(m.table.Members) == 0):
		if m.namesake() != "" {
			return nil
		}
		if m.cfg.Slot != nil && m.slot(m.table.Members) < 0 {
			m.fail("the cluster has as many nodes as it was planned for, %d: a node has to leave first", len(m.table.Members))
			return nil
		}
		t := m.table.clone()
		t.add(strategy.Member{Node: m.cfg.Self, Slot: m.slot(t.Members)})
		return t
	case m.phase == in && len(m.table.Members) == 0: // all to whom it was handing over have died
		t := m.table.clone()
		t.Leaving = slices.DeleteFunc(t.Leaving, func(n strategy.Node) bool { return n == m.cfg.Self })
		t.add(strategy.Member{Node: m.cfg.Self, Slot: m.slot(t.Members)})
		return t
	case !m.table.settled():
		if !m.allDone() {
			return nil
		}
		t := m.table.clone()
		t.settle()
		return t
	case m.phase == in && m.leaving && m.table.has(m.cfg.Self) && len(m.table.Members) > 1 && m.movesNothing():
		t := m.table.clone()
		t.remove(m.cfg.Self)
		t.Leaving = append(t.Leaving, m.cfg.Self)
		return t
	case m.phase == in && m.guard && len(m.offers) > 0 && !m.movesAt.After(m.now):
		return m.withMoves()
	}
	return nil
}

func (m *Member) slot(members []strategy.Member) int {
	if m.cfg.Slot == nil {
		return -1
	}
	return m.cfg.Slot(members, m.cfg.Self)
}

// namesake is another life of this node that is still in the table, "" if there is none. If it goes on renewing its
// lease, it is another node of the same name; otherwise it will be given up.
func (m *Member) namesake() strategy.Node {
	for _, o := range m.table.Members {
		if o.Node != m.cfg.Self && o.Node.Name() == m.cfg.Self.Name() {
			return o.Node
		}
	}
	return ""
}

// markDead notes that the lease of a node is revoked that the table still has.
func (m *Member) markDead(n strategy.Node) {
	if m.table != nil && m.table.part(n) {
		m.dead[n] = true
	}
}

// allDone reports whether all have what is theirs, as far as a guard knows.
func (m *Member) allDone() bool {
	return m.guard && m.phase == in && m.done >= m.table.Epoch && len(m.behind) == 0
}

// finish leaves a cluster that has nobody else: the node stays in the table, and what it has on its disk.
func (m *Member) finish() {
	if m.leaving && len(m.table.Members) == 1 && m.table.has(m.cfg.Self) && m.table.settled() && len(m.exports) == 0 {
		m.end(member.Left{})
	}
}

// publish makes what is known now the view that workers ask.
func (m *Member) publish() {
	if m.table == nil || m.phase != in {
		return
	}
	v := &View{self: m.cfg.Self, epoch: m.table.Epoch, until: m.lease.until, owner: m.route, in: m.table.has(m.cfg.Self)}
	if m.cfg.Place != nil {
		v.owner = m.views(m.table.Epoch)
		for e := m.has; e < m.table.Epoch; e++ {
			v.past = append(v.past, m.views(e))
		}
	}
	m.view = v
	m.do(member.Publish{View: v})
}

// views is a Placer's view of an epoch.
func (m *Member) views(epoch uint64) strategy.View { return m.places[epoch].(placed).view }

// sortedNodes are the keys of a map, so that what is done does not depend on chance.
func sortedNodes[V any](all map[strategy.Node]V) []strategy.Node {
	nodes := make([]strategy.Node, 0, len(all))
	for n := range all {
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b strategy.Node) int { return cmp.Compare(a, b) })
	return nodes
}
