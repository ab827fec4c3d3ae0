package mesh

import "kumo/internal/cluster/strategy"

// marks record at a host's backups which URLs are done.
//
// A target reports fetched URLs to the first backup that it reaches (itemMarks), which records them and sends them to
// the other backups (itemStore). Reviews repair lost messages.
//
// In a crawl with recrawls, the report of a URL has its next visit, Scheduled. No review would find a lost one, so it is
// accepted only when all backups have it; otherwise the target repeats it.
type marks struct {
	absences *absences
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
		// a target that is also the first backup may restart, and then know neither loans nor targets
		it := item{kind: itemStore, host: host, links: done, node: m.hosts.target(host)}
		for _, to := range peers {
			if m.mayLearn(to) {
				m.mail.post(to, it, func(strategy.Node, *reply) {})
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
	over := func(before []State, accepted bool) {
		if other {
			m.differs(it, before)
		}
		if accepted {
			answer(reply{code: replyYes})
		} else {
			answer(later())
		}
	}
	if countScheduled(it.links) > 0 {
		m.schedule(it.host, it.links, over)
	} else {
		m.mark(it.host, it.links, func(before []State) { over(before, true) })
	}
}

// schedule is mark for links that may be scheduled. It reports whether all backups have recorded them.
func (m *marks) schedule(host string, links []Link, over func(before []State, all bool)) {
	m.history.record(host, links, func(r Recorded, _ []Link) {
		var stored []strategy.Node
		left := 1
		answered := func() {
			if left--; left == 0 {
				over(r.Before, m.absences.complete(host, stored))
			}
		}
		peers, _ := m.place.otherBackups(host)
		for _, to := range peers {
			if !m.mayLearn(to) {
				continue
			}
			left++
			m.mail.post(to, item{kind: itemStore, host: host, links: links}, func(_ strategy.Node, r *reply) {
				if m.absences.applyWait(r); r != nil && r.code == replyYes {
					stored = append(stored, to)
				}
				answered()
			})
		}
		answered()
	})
}

func countScheduled(links []Link) (n int) {
	for i := range links {
		if links[i].State == Scheduled {
			n++
		}
	}
	return n
}
