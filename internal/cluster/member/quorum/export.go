package quorum

import (
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// A stage is how far an export is.
type stage uint8

const (
	// the holder stops hosts, or folds an estate; others are asked what came whole to them under earlier epochs
	preparing  stage = iota
	clearing         // that is forgotten
	reading          // chunks are read and sent
	forgetting       // all came whole; it is forgotten
	releasing        // what else an estate has is to be taken over
	awaiting         // and is
	finished
)

// An export is the handing over, under one epoch, of what one node holds and others own: this node, or a dead one.
type export struct {
	from    strategy.Node
	epoch   uint64
	attempt uint64
	stage   stage
	asks    map[strategy.Node]bool // who has yet to say what came whole to it
	askAt   time.Time              // when they are asked again
	gone    []member.Transfer      // came whole under earlier epochs, and is to be forgotten
	flows   map[strategy.Node]*flow
	reads   int  // chunks asked for that have not come
	ended   bool // there are no more
	moved   bool // there was one
}

// A takeover is a dead node whose estate this one folds.
type takeover struct {
	folded   bool
	released bool              // nothing is left of it
	arrived  []member.Transfer // had come whole to it
	forgot   []member.Transfer // had come whole from it, and it had forgotten that
}

// due is when an export wants to be looked at again; zero: when something happens.
func (e *export) due() (at time.Time) {
	if len(e.asks) > 0 {
		at = e.askAt
	}
	for _, f := range e.flows {
		if len(f.queue) > 0 {
			at = earlier(at, f.at)
		}
	}
	return at
}

// nextExports begins the exports of a new epoch, with what those of the last have left undecided.
func (m *Member) nextExports() {
	before := m.exports
	m.exports = map[strategy.Node]*export{}
	m.drained = false
	m.nextExport(m.cfg.Self, before[m.cfg.Self], m.unsure)
	m.unsure = false
	for _, dead := range m.table.Estates {
		if m.table.takeoverNode(dead) != m.cfg.Self {
			continue
		}
		if m.ghosts[dead] == nil {
			m.ghosts[dead] = &takeover{}
			m.do(member.Fold{Node: dead})
		}
		m.nextExport(dead, before[dead], before[dead] == nil)
	}
	for _, dead := range sortedNodes(m.ghosts) {
		if m.exports[dead] == nil {
			m.do(member.Unfold{Node: dead})
			delete(m.ghosts, dead)
		}
	}
}

// nextExport begins an export. Of one who is unsure, an earlier process may have transferred something under an epoch
// that is not settled.
func (m *Member) nextExport(from strategy.Node, last *export, unsure bool) {
	e := &export{from: from, epoch: m.table.Epoch, attempt: m.lease.rev << 16, asks: map[strategy.Node]bool{},
		flows: map[strategy.Node]*flow{}}
	for _, to := range m.table.receivers(from, m.cfg.shift()) {
		e.flows[to] = &flow{}
	}
	if unsure {
		m.table.each(func(n strategy.Node) { e.asks[n] = n != from })
		delete(e.asks, from)
	}
	if last != nil {
		e.inherit(last)
	}
	if from == m.cfg.Self && len(e.flows)+len(e.asks)+len(e.gone) == 0 {
		return
	}
	m.exports[from] = e
}

// inherit takes over what an export of an earlier epoch has not brought to an end: whom it reached whole is known, or
// has to say.
func (e *export) inherit(last *export) {
	for n := range last.asks {
		e.asks[n] = true
	}
	e.gone = append(e.gone, last.gone...)
	if last.stage > forgetting {
		return
	}
	for _, n := range sortedNodes(last.flows) {
		switch f := last.flows[n]; {
		case f.whole:
			e.gone = append(e.gone, member.Transfer{From: e.from, To: n, Epoch: last.epoch})
		case last.ended:
			e.asks[n] = true // the last chunk was sent
		}
	}
}

// driveAll takes all exports as far as they can go.
func (m *Member) driveAll() {
	for _, n := range sortedNodes(m.exports) {
		m.drive(m.exports[n])
	}
	m.complete()
}

func (m *Member) drive(e *export) {
	if e.stage == preparing && m.prepared(e) {
		e.stage = reading
		e.gone = slices.DeleteFunc(e.gone, m.isDone(e))
		if len(e.gone) > 0 {
			e.stage = clearing
			m.do(member.Forget{From: e.from, Epoch: e.epoch, Gone: m.oneOf(e.gone), Whole: slices.Clone(e.gone)})
		}
	}
	if e.stage == reading {
		m.read(e)
	}
	if e.stage == reading && e.ended && e.whole() {
		e.stage = releasing
		if len(e.flows) > 0 {
			e.stage = forgetting
			m.do(m.forget(e))
		}
	}
	if e.stage == releasing {
		m.release(e)
	}
}

// prepared reports whether the export may begin: what is held does not change any more, and is known.
func (m *Member) prepared(e *export) bool {
	if m.ask(e); len(e.asks) > 0 || !m.knowsMoves(e.from) {
		return false
	}
	if e.from != m.cfg.Self {
		return m.ghosts[e.from].folded
	}
	return m.drained && len(m.olds) == 0
}

// complete notes that this node is done with the epoch.
func (m *Member) complete() {
	if m.done == m.table.Epoch || min(m.has, m.bookings()) < m.table.Epoch && m.table.has(m.cfg.Self) {
		return
	}
	for _, e := range m.exports {
		if e.stage != finished {
			return
		}
	}
	m.done = m.table.Epoch
	m.renew()
	if m.guard && len(m.behind) == 0 && !m.table.settled() {
		m.stagger()
	}
}
