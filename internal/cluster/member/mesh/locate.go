package mesh

import (
	"slices"

	"kumo/internal/cluster/strategy"
)

// locate finds a host's nodes. A host that its target has given to another node for a while counts as that one's where
// the target is asked itself; others do not know.
func (m *Machine) locate(e Locate) {
	l := Located{Tag: e.Tag}
	_, l.Exact = m.near(m.target(e.Host), 1)
	_, exact := m.near(m.backup(e.Host), m.cfg.Backups)
	l.Exact = l.Exact && exact
	m.find(m.target(e.Host), false, func(nodes []strategy.Node) {
		if len(nodes) > 0 {
			l.Target = nodes[0]
		}
		if to := m.balance.away[e.Host]; to != "" && l.Target == m.cfg.Self {
			l.Target = to
		}
		m.find(m.backup(e.Host), false, func(nodes []strategy.Node) {
			l.Backups = slices.Clone(nodes[:min(len(nodes), m.cfg.Backups)])
			m.do(l)
		})
	})
}
