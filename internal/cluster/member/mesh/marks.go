package mesh

import "kumo/internal/cluster/strategy"

// marks record at a host's backups which URLs are done.
//
// A target reports fetched URLs to the first backup that it reaches (itemMarks), which records them and sends them to
// the other backups (itemStore). Reviews repair lost messages.
type marks struct {
	place    *place
	mail     poster
	history  store
	mayLearn func(strategy.Node) bool // whether a node may learn that URLs are done
	hosts    *openHosts
	differs  func(it item, before []State) // called when a node that is not the target has fetched URLs
}

// mark records done URLs, here and at the other backups. It calls over with their previous states.
func (m *marks) mark(host string, done []Link, over func(before []State)) {
	m.history.record(host, done, func(r Recorded, _ []Link) {
		peers, _ := m.place.otherBackups(host)
		for _, to := range peers {
			if m.mayLearn(to) {
				m.mail.post(to, item{kind: itemStore, host: host, links: done}, func(strategy.Node, *reply) {})
			}
		}
		over(r.Before)
	})
}

// receive processes an itemMarks of the target or an earlier one.
func (m *marks) receive(from strategy.Node, it item, answer func(reply)) {
	if _, is := m.place.otherBackups(it.host); !is || len(it.links) == 0 {
		answer(reply{code: replyNo})
		return
	}
	other := m.hosts.fetchedBy(it.host, from)
	m.mark(it.host, it.links, func(before []State) {
		if other {
			m.differs(it, before)
		}
		answer(reply{code: replyYes})
	})
}
