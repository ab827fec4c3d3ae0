package mesh

// dueVisits dispatch scheduled visits that are due, at the first backup of their host.
//
// A due visit is claimed like a link: all backups record it as dispatched, and it stays so until it is done. A new first
// backup that has it as scheduled claims it again, which has no effect if another one dispatched it before.
type dueVisits struct {
	core     *core
	place    *place
	claims   *claims
	claiming map[string]bool // hosts
}

// due dispatches visits of a host. The caller repeats those that are not dispatched.
func (d *dueVisits) due(e Due) {
	if !d.dispatches(e.Host) || d.claiming[e.Host] || len(d.claiming) >= maxDueHosts {
		return
	}
	d.core.activity++
	d.claiming[e.Host] = true
	links := make([]Link, len(e.Links))
	for i, k := range e.Links {
		k.State = Dispatched
		links[i] = k
	}
	d.claims.claim(d.core.self, e.Host, links, func(bool) { delete(d.claiming, e.Host) })
}

// maxDueHosts is the number of hosts whose visits are claimed at once.
const maxDueHosts = 1024

// dispatches reports whether this node dispatches the visits of a host.
func (d *dueVisits) dispatches(host string) bool {
	return !d.place.leaving && d.place.isFresh() && d.place.isFirst(host)
}

// DispatchesDue reports whether this node dispatches the due visits of a host. It is as of the last Step.
func (m *Machine) DispatchesDue(host string) bool { return m.dueVisits.dispatches(host) }
