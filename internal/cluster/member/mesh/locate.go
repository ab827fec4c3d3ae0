package mesh

import (
	"slices"

	"kumo/internal/cluster/strategy"
)

// locate finds a host's nodes. Only the target itself can tell whether it has lent a host to another node, which then
// counts as the target.
func (m *Machine) locate(e Locate) {
	l := Located{Tag: e.Tag}
	target, backup := m.place.targetID(e.Host), m.place.backupID(e.Host)
	_, l.Exact = m.place.near(target, 1)
	_, exact := m.place.nearBackups(e.Host)
	l.Exact = l.Exact && exact
	m.lookups.find(target, false, func(nodes []strategy.Node) {
		if len(nodes) > 0 {
			l.Target = nodes[0]
		}
		if to := m.holdings.lent[e.Host]; to != "" && l.Target == m.core.self {
			l.Target = to
		}
		m.lookups.find(backup, false, func(nodes []strategy.Node) {
			l.Backups = slices.Clone(nodes[:min(len(nodes), m.place.backups)])
			m.core.do(l)
		})
	})
}
