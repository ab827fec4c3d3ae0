package mesh

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// When a network that was cut is whole again, the target of a host has URLs in its queue that were fetched in the other
// part; one that has just come may have some that the one before has fetched, and had not said yet. The backups unite
// what they know, and the first of them sees that it differs: then it recalls the queue. The target gives the host up,
// as if it were another's now, and is given what is still open.

// recallAfter is how long other backups may take to tell what they know, too.
const recallAfter = time.Second

// differed recalls the queue of a host of which another node knows less to be done than was known here, or more.
func (m *Machine) differed(it item, before []State) {
	if m.recalls[it.host] || !m.closest(m.backup(it.host)) {
		return
	}
	for i, s := range before {
		if s != Unknown && s != it.links[i].State {
			m.recalls[it.host] = true
			m.after(recallAfter, func() { m.recall(it.host) })
			return
		}
	}
}

func (m *Machine) recall(host string) {
	delete(m.recalls, host)
	if !m.closest(m.backup(host)) {
		return
	}
	m.find(m.target(host), false, func(nodes []strategy.Node) {
		if len(nodes) == 0 {
			return
		}
		it := item{kind: itemRecall, host: host}
		m.post(nodes[0], it, func(_ strategy.Node, r *reply) {
			if r != nil && r.code == replyMoved {
				m.post(r.node, it, func(strategy.Node, *reply) {})
			}
		})
	})
}

// recalled gives a host up of which something waits here.
func (m *Machine) recalled(it item, answer func(reply)) {
	g, to := m.held[it.host], m.balance.away[it.host]
	if g == nil && to != "" {
		answer(reply{code: replyMoved, node: to})
		return
	}
	if g != nil && !g.stopping && m.cfg.Waits(it.host) {
		m.stop(g)
	}
	answer(reply{code: replyYes})
}
