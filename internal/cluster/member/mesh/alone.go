package mesh

import (
	"time"

	"kumo/internal/base/xor"
)

// A node that loses all others without a farewell cannot tell why: they have died, or it is cut off for a while, or it
// has slept, and they have ended the crawl. So for Config.Alone it takes nothing that was theirs, as if they were still
// there, and goes on with what it had itself; with nothing at all if what it knew has become stale, as others may have
// fetched that meanwhile. Then it goes on as the only one.

// DefaultAlone is a Config's Alone.
const DefaultAlone = 15 * time.Second

// solitude is what a node goes by that has lost all others.
type solitude struct {
	since time.Time // when the last of them died; zero: there is one, there never was one, or the last one has left
	until time.Time // for so long they count as there
	fresh time.Time // what Fresh has said meanwhile
	left  bool      // the last node that has gone has said farewell
}

func (a *solitude) waits(now time.Time) bool { return now.Before(a.until) }

// Lost is since when this node has been without others, all of which it has lost without a farewell of the last; a zero
// time if it has not.
func (m *Machine) Lost() time.Time { return m.alone.since }

// occupants are the bits whose buckets have somebody, or for a while had somebody.
func (m *Machine) occupants() xor.ID {
	now, a := m.cfg.Overlay.Occupied(), &m.alone
	switch {
	case now != xor.ID{}:
		*a = solitude{left: a.left}
	case m.occupied == xor.ID{} || m.leaving || a.left:
	case a.since.IsZero():
		a.since, a.until = m.now, m.now.Add(m.cfg.Alone)
		m.log.Warn("no other node answers any more: what was theirs is left to them for now", "wait", m.cfg.Alone)
		m.after(m.cfg.Alone, func() { m.goOnAlone(a.until) })
		return m.occupied
	case a.waits(m.now):
		return m.occupied
	}
	return now
}

// goOnAlone goes on as the only node, if no other was met since this was planned.
func (m *Machine) goOnAlone(until time.Time) {
	if m.alone.until != until || m.leaving {
		return
	}
	m.log.Warn("none of the other nodes answers: this one goes on alone until one does")
	m.neighbours()
	if m.alone.fresh.After(m.fresh) {
		m.refresh(m.alone.fresh)
	}
}

// refresh takes in until when what is known of the nodes around holds.
func (m *Machine) refresh(until time.Time) {
	stale := !m.now.Before(m.fresh)
	if stale && m.now.Sub(m.fresh) > replaced {
		m.stopAll()
		m.forgetFirsts()
	}
	if stale {
		m.publish()
		if m.alone.waits(m.now) {
			m.alone.fresh = until
			return
		}
	}
	m.fresh = until
	v := *m.view
	v.until = until
	if m.show(&v); stale {
		m.lookAgain()
	}
	m.seekEnd()
}
