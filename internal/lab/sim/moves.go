package sim

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// moveWatcher watches hosts that move because a node has little to do. None of them may move again for that reason soon, but
// to a node that came when it had moved.
type moveWatcher struct {
	w           *world
	last        map[string]lastMove      // by host
	memberSince map[strategy.Node]moment // when nodes became members
	onMove      func(h central.Host)     // of each move; nil: nobody is
}

// A move is the last one of a host, as long as it is with the node to which it went.
type lastMove struct {
	to strategy.Node
	at moment
}

// joinLag is for how long the control unit may not know that a node is a member.
const joinLag = time.Minute

// updateMembers is told of each table.
func (m *moveWatcher) updateMembers(all []strategy.Member) {
	for _, one := range all {
		if _, known := m.memberSince[one.Node]; !known {
			m.memberSince[one.Node] = m.w.k.now
		}
	}
}

// addLogEntry is told of each entry of the strategy's log.
func (m *moveWatcher) addLogEntry(entry []byte) {
	if m.w.cfg.DecodeDecision == nil {
		return
	}
	if err := m.w.cfg.DecodeDecision(entry, m.checkMove); err != nil {
		m.w.violate("an entry of the strategy's log that cannot be read: %v", err)
	}
}

func (m *moveWatcher) checkMove(h central.Host) {
	last, moved := m.last[h.Name]
	switch {
	case !h.Moved: // it is another's for another reason
		delete(m.last, h.Name)
	case moved && last.to == h.Owner: // and now it has come
	case moved && m.w.k.now-last.at < m.w.cfg.MinStay && m.memberSince[h.Owner] < last.at-joinLag:
		m.w.violateHost(m.w.web.byName[h.Name], "%s goes to %s, %v after it went to %s: to and fro", h.Name, h.Owner,
			m.w.k.now-last.at, last.to)
	default:
		m.w.figures.Moved++
		m.w.logHost(m.w.web.byName[h.Name], "%s is to go to %s, which has less to do", h.Name, h.Owner)
		m.last[h.Name] = lastMove{h.Owner, m.w.k.now}
		if m.onMove != nil {
			m.onMove(h)
		}
	}
}
