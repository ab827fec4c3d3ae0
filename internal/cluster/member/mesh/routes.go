package mesh

import (
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/cluster/strategy"
)

// routes find the nodes to which links are offered: the first backups of their hosts.
//
// A route is exact near this node. Elsewhere it comes from a lookup, and expires; or from the host's first backup
// itself, if this node fetches the host.
type routes struct {
	core    *core
	place   *place
	lookups finder
	contact func(host string) *contact // the first backup of a host that this node fetches; nil if it does not
	first   *bounded.Recent[string, route]
	pending map[string]bool // hosts being looked up
}

type route struct {
	to    strategy.Node
	until time.Time // end of validity
}

const (
	routeFor = 30 * time.Second
	// A node that has dispatched links of a host, or checked it, counts as its first backup for this long without a
	// lookup. It checks more often than that, and is the first to notice when it is no longer the first backup.
	contactFor = 90 * time.Second
)

func newRoutes(c *core, p *place, f finder, contact func(host string) *contact, most int) *routes {
	return &routes{core: c, place: p, lookups: f, contact: contact, first: bounded.NewRecent[string, route](most),
		pending: map[string]bool{}}
}

// nodeFor returns the node to which links to a host are offered; false if it is not known: see lookUp.
func (r *routes) nodeFor(host string) (strategy.Node, bool) {
	id := r.place.backupID(host)
	if r.place.closest(id) {
		return r.core.self, true
	}
	// While this node is not sure of its place, it would refuse its own offers.
	if nodes, exact := r.place.near(id, 1); exact {
		return nodes[0], nodes[0] != r.core.self
	}
	if c := r.contact(host); c != nil && c.node != "" && r.core.now.Before(c.heard.Add(contactFor)) {
		return c.node, true
	}
	got, ok := r.first.Get(host)
	return got.to, ok && r.core.now.Before(got.until)
}

// lookUp looks up the first backups of hosts, and reports new ones by Routed. If the result is the node that has just
// refused links or has not answered, the links wait until the outbox retries.
func (r *routes) lookUp(hosts []string) {
	for _, host := range hosts {
		was, routed := r.first.Get(host)
		again := routed && r.core.now.Before(was.until) // that node has refused links
		if c := r.contact(host); c != nil {
			again = again || !c.heard.IsZero()
			c.heard = time.Time{}
		}
		if r.pending[host] {
			continue
		}
		r.first.Put(host, route{to: was.to})
		r.pending[host] = true
		r.lookups.find(r.place.backupID(host), again, func(nodes []strategy.Node) {
			delete(r.pending, host)
			if len(nodes) == 0 || nodes[0] == r.core.self {
				return
			}
			r.first.Put(host, route{nodes[0], r.core.now.Add(routeFor)})
			if nodes[0] != was.to {
				r.core.do(Routed{Hosts: []string{host}})
			}
		})
	}
}
