package mesh
import "fmt"
func (m *Machine) Debug() (s string) {
	s = fmt.Sprint("recording ", len(m.recording), " taking ", len(m.taking), " inbound ", len(m.inbound), " offers ", len(m.offers), " in ", m.view.in, " out ", m.view.out, " away ", m.balance.away)
	for to, l := range m.lanes { s += fmt.Sprint(" lane ", to, " ", len(l.queue), "/", len(l.flights)) }
	for _, h := range m.hosts { if h.first { s += fmt.Sprintf("\n   first of %s open %d target %q queue %d %+v", h.host, h.open, h.target, len(h.queue), []bool{h.reread,h.unsure,h.finding,h.reading,h.flying,h.resting}) } }
	return s
}
func (m *Machine) DebugHost(h string) string { g := m.held[h]; if g == nil { return "not held" }; return fmt.Sprintf("held: from %s stopping %v marks %d saying %v released %v asking %v closest %v", g.from, g.stopping, len(g.marks), g.saying, g.released, g.asking, m.closest(g.id)) }
