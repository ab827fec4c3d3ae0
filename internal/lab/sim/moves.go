package sim

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// moveWatcher checks hosts that are moved because a node has little load. Such a host must not be moved for that reason
// again soon, except to a node that joined after the move.
type moveWatcher struct {
	w           *world
	last        map[string]lastMove      // by host
	memberSince map[strategy.Node]moment // time each node became a member
	onMove      func(h central.Host)     // called for each move; may be nil
}

// A lastMove is a host's last move, kept while the host stays where it went.
type lastMove struct {
	to strategy.Node
	at moment
}

// joinLag is how long the control unit may be unaware of a new member.
const joinLag = time.Minute

// updateMembers records the members of a new table.
func (m *moveWatcher) updateMembers(all []strategy.Member) {
	for _, one := range all {
		if _, known := m.memberSince[one.Node]; !known {
			m.memberSince[one.Node] = m.w.k.now
		}
	}
}

// addLogEntry checks an entry of the strategy's log.
func (m *moveWatcher) addLogEntry(entry []byte) {
	if m.w.cfg.DecodeDecision == nil {
		return
	}
	if err := m.w.cfg.DecodeDecision(entry, m.checkMove); err != nil {
		m.w.violate("decode an entry of the strategy's log: %v", err)
	}
}

func (m *moveWatcher) checkMove(h central.Host) {
	last, moved := m.last[h.Name]
	switch {
	case !h.Moved: // it changed its owner for another reason
		delete(m.last, h.Name)
	case moved && last.to == h.Owner: // it has arrived
	case moved && m.w.k.now-last.at < m.w.cfg.MinStay && m.memberSince[h.Owner] < last.at-joinLag:
		m.w.violateHost(m.w.web.byName[h.Name], "%s moves to %s, only %v after it moved to %s", h.Name, h.Owner,
			m.w.k.now-last.at, last.to)
	default:
		m.w.figures.Moved++
		m.w.logHost(m.w.web.byName[h.Name], "%s is to move to %s, which has less load", h.Name, h.Owner)
		m.last[h.Name] = lastMove{h.Owner, m.w.k.now}
		if m.onMove != nil {
			m.onMove(h)
		}
	}
}
