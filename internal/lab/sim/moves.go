package sim

import (
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
)

// moves watches hosts that move because a node has little to do. None of them may move again for that reason soon, but
// to a node that came when it had moved.
type moves struct {
	w    *world
	last map[string]move          // by host
	came map[strategy.Node]moment // when nodes became members
	told func(h central.Host)     // of each move; nil: nobody is
}

// A move is the last one of a host, as long as it is with the node to which it went.
type move struct {
	to strategy.Node
	at moment
}

// unaware is for how long the control unit may not know that a node is a member.
const unaware = time.Minute

// members is told of each table.
func (m *moves) members(all []strategy.Member) {
	for _, one := range all {
		if _, known := m.came[one.Node]; !known {
			m.came[one.Node] = m.w.k.now
		}
	}
}

// decided is told of each entry of the strategy's log.
func (m *moves) decided(entry []byte) {
	if m.w.cfg.Decided == nil {
		return
	}
	if err := m.w.cfg.Decided(entry, m.host); err != nil {
		m.w.violate("an entry of the strategy's log that cannot be read: %v", err)
	}
}

func (m *moves) host(h central.Host) {
	last, moved := m.last[h.Name]
	switch {
	case !h.Moved: // it is another's for another reason
		delete(m.last, h.Name)
	case moved && last.to == h.Owner: // and now it has come
	case moved && m.w.k.now-last.at < m.w.cfg.Settles && m.came[h.Owner] < last.at-unaware:
		m.w.violateOf(m.w.web.byName[h.Name], "%s goes to %s, %v after it went to %s: to and fro", h.Name, h.Owner,
			m.w.k.now-last.at, last.to)
	default:
		m.w.figures.Moved++
		m.w.tellOf(m.w.web.byName[h.Name], "%s is to go to %s, which has less to do", h.Name, h.Owner)
		m.last[h.Name] = move{h.Owner, m.w.k.now}
		if m.told != nil {
			m.told(h)
		}
	}
}
