package quorum

import (
	"slices"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// An arrival is a transfer to this node that has not come whole.
type arrival struct {
	t      member.Transfer
	sender strategy.Node
	issued uint64              // chunks given to the holder
	taken  uint64              // of these, journalled
	ending bool                // the last one was given to it
	drops  bool                // it is being undone
	early  map[uint64]chunkMsg // that came before those that are to be given first
}

// maxEarly is how many bytes of chunks are kept that came too early, of all arrivals; what comes beyond is sent again.
const maxEarly = 16 << 20

func (m *Member) message(e member.Message) {
	if m.phase != in {
		return
	}
	msg, err := decode(e.Data)
	if err != nil {
		return // of another version, or no member's
	}
	switch msg := msg.(type) {
	case chunkMsg:
		m.comes(e.From, msg)
	case ackMsg:
		m.ack(e.From, msg)
	case askMsg:
		m.asked(e.From, msg)
	case answerMsg:
		m.answer(msg)
	}
}

// comes is told of a chunk of a transfer to this node. What is of another epoch is not answered: either end will learn
// of the new one.
func (m *Member) comes(from strategy.Node, c chunkMsg) {
	t := c.t
	if t.To != m.cfg.Self || t.Epoch != m.table.Epoch || !m.table.has(m.cfg.Self) {
		return
	}
	// it came, perhaps long ago: the epoch may be settled, and this one late
	if !m.owed[t.From] || m.cameUnder(t.From, t.Epoch) {
		m.do(member.Send{To: from, Data: ackMsg{t: t, whole: true}.encode()})
		return
	}
	if e := m.exports[m.cfg.Self]; e != nil && e.stage < reading {
		return // what is to be forgotten may come back with this very transfer
	}
	if slices.ContainsFunc(m.olds, func(a *arrival) bool { return a.t.From == t.From }) {
		return
	}
	c.data = slices.Clone(c.data)
	a := m.coming[t.From]
	if a == nil || a.t.Attempt < t.Attempt {
		if a != nil {
			m.letGo(a)
		}
		if a != nil && a.issued > 0 {
			m.retire(a)
			delete(m.coming, t.From)
			return // and begin when that is undone
		}
		a = &arrival{t: t}
		m.coming[t.From] = a
	}
	switch {
	case a.t.Attempt != t.Attempt:
		return
	case c.seq != a.issued:
		m.keep(a, c)
		m.sendAck(from, a)
		return
	}
	a.sender = from
	m.issue(a, c)
	for next, there := a.early[a.issued]; there; next, there = a.early[a.issued] {
		delete(a.early, next.seq)
		m.early -= len(next.data)
		m.issue(a, next)
	}
}

// keep holds a chunk that came before others, if there is room.
func (m *Member) keep(a *arrival, c chunkMsg) {
	if _, has := a.early[c.seq]; has || c.seq < a.issued || len(a.early) >= m.cfg.Timing.Window ||
		m.early+len(c.data) > maxEarly {
		return
	}
	if a.early == nil {
		a.early = map[uint64]chunkMsg{}
	}
	a.early[c.seq] = c
	m.early += len(c.data)
}

// issue gives the holder the next chunk.
func (m *Member) issue(a *arrival, c chunkMsg) {
	a.issued++
	a.ending = c.last
	m.do(member.Take{Transfer: c.t, Seq: c.seq, Last: c.last, Data: c.data})
}

// letGo lets go of what came too early.
func (m *Member) letGo(a *arrival) {
	for _, c := range a.early {
		m.early -= len(c.data)
	}
	a.early = nil
}

func (m *Member) sendAck(to strategy.Node, a *arrival) {
	m.do(member.Send{To: to, Data: ackMsg{t: a.t, next: a.taken, process: m.lease.process}.encode()})
}

func (m *Member) cameUnder(from strategy.Node, epoch uint64) bool {
	return slices.ContainsFunc(m.arrived, func(t member.Transfer) bool { return t.From == from && t.Epoch == epoch })
}

// taken is told that a chunk is journalled.
func (m *Member) taken(e member.Taken) {
	a := m.coming[e.Transfer.From]
	if a == nil || a.t != e.Transfer {
		if i := m.old(e.Transfer); i >= 0 {
			m.oldTaken(i)
		}
		return
	}
	a.taken++
	if !a.ending || a.taken < a.issued {
		m.sendAck(a.sender, a)
		return
	}
	m.arrived = append(m.arrived, a.t)
	m.came(a.t)
	delete(m.coming, a.t.From)
	m.do(member.Send{To: a.sender, Data: ackMsg{t: a.t, whole: true}.encode()})
	m.arrive()
}

// expect notes from whom something may come under a new epoch.
func (m *Member) expect() {
	m.owed = map[strategy.Node]bool{}
	for _, n := range m.table.senders(m.cfg.Self, m.cfg.shift()) {
		m.owed[n] = true
	}
	for _, t := range m.arrived {
		m.came(t)
	}
}

// bookings is up to which epoch the strategy knows of all that has come; a Placer need not.
func (m *Member) bookings() uint64 {
	if m.cfg.Place != nil {
		return m.table.Epoch
	}
	return m.booked
}

// came notes that a transfer came whole.
func (m *Member) came(t member.Transfer) {
	if t.Epoch == m.table.Epoch {
		delete(m.owed, t.From)
	}
}

// arrive notes that all has come that may come to this node under the epoch.
func (m *Member) arrive() {
	if m.has < m.table.Epoch && m.table.has(m.cfg.Self) && len(m.owed) == 0 {
		m.has = m.table.Epoch
		m.publish()
		if m.cfg.Place == nil {
			m.do(member.Whole{Epoch: m.has})
		}
	}
}

// outdate ends what was on its way under earlier epochs: what did not come whole is undone.
func (m *Member) outdate() {
	for _, n := range sortedNodes(m.coming) {
		a := m.coming[n]
		if m.letGo(a); a.issued > 0 {
			m.retire(a)
		}
	}
	clear(m.coming)
}

// retire makes an arrival one of the olds, which are undone as soon as the holder has no chunk of theirs in hand.
func (m *Member) retire(a *arrival) {
	m.olds = append(m.olds, a)
	m.undo(a)
}

func (m *Member) undo(a *arrival) {
	if a.taken == a.issued && !a.drops {
		a.drops = true
		m.do(member.Drop{Transfer: a.t})
	}
}

func (m *Member) old(t member.Transfer) int {
	return slices.IndexFunc(m.olds, func(a *arrival) bool { return a.t == t })
}

func (m *Member) oldTaken(i int) {
	a := m.olds[i]
	a.taken++
	if a.ending && a.taken == a.issued { // it came whole after all
		m.arrived = append(m.arrived, a.t)
		m.came(a.t)
		m.olds = slices.Delete(m.olds, i, i+1)
		m.arrive()
		return
	}
	m.undo(a)
}

func (m *Member) dropped(d member.Dropped) {
	if i := m.old(d.Transfer); i >= 0 {
		m.olds = slices.Delete(m.olds, i, i+1)
	}
}
