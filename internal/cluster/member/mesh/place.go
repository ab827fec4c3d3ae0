package mesh

import (
	"maps"
	"slices"
	"time"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/strategy"
)

// A place is this node's place in the space of ids. It decides which ids the node is the closest to, and publishes as a
// [View] which hosts the node fetches.
//
// While the overlay's knowledge is stale, or the node leaves, it is the closest to nothing.
type place struct {
	core       *core
	overlay    Overlay
	id         xor.ID
	width      int       // significant bits of an id
	backups    int       // of a host
	freshUntil time.Time // until when the overlay's knowledge holds
	occupied   xor.ID    // bits whose buckets contain a node
	leaving    bool
	alone      isolation
	view       *View // the last published view
}

func newPlace(c *core, overlay Overlay, width, backups int) *place {
	p := &place{core: c, overlay: overlay, width: width, backups: backups}
	p.id = p.nodeID(c.self)
	return p
}

func (p *place) idOf(kind, name string) xor.ID { return xor.Of(kind, name).Truncate(p.width) }

func (p *place) nodeID(n strategy.Node) xor.ID { return p.idOf("node", string(n)) }

// endID returns the id whose closest node detects the end of the crawl, and divides the page limit.
func (p *place) endID() xor.ID { return p.idOf("end", "") }

// targetID returns the id to which a host's target is the closest node.
func (p *place) targetID(host string) xor.ID { return p.idOf("target", host) }

// backupID returns the id to which a host's backups are the closest nodes.
func (p *place) backupID(host string) xor.ID { return p.idOf("backup", host) }

// isFresh reports whether the overlay's knowledge holds.
func (p *place) isFresh() bool { return p.core.now.Before(p.freshUntil) }

// closest reports whether no live node is closer to an id than this one.
func (p *place) closest(id xor.ID) bool {
	if p.leaving || !p.isFresh() {
		return false
	}
	return p.id.Distance(id).And(p.occupied) == xor.ID{}
}

func (p *place) isFirst(host string) bool { return p.closest(p.backupID(host)) }

// isTarget reports whether this node is the closest to a host's target id.
func (p *place) isTarget(host string) bool { return p.closest(p.targetID(host)) }

// near returns the n known live nodes closest to an id, and whether this node knows all nodes there. A node that leaves
// does not count itself.
func (p *place) near(id xor.ID, n int) (nodes []strategy.Node, exact bool) {
	if !p.leaving {
		return p.overlay.Closest(id, n)
	}
	nodes, exact = p.overlay.Closest(id, n+1)
	nodes = slices.DeleteFunc(slices.Clone(nodes), func(o strategy.Node) bool { return o == p.core.self })
	return nodes[:min(len(nodes), n)], exact && len(nodes) > 0
}

// nearBackups returns the known live nodes closest to a host's backup id.
func (p *place) nearBackups(host string) (nodes []strategy.Node, exact bool) {
	return p.near(p.backupID(host), p.backups)
}

// otherBackups returns a host's backups without this node, the first one first, and whether this node is a backup. The
// result is exact if this node is a backup: then its neighbors are around the host.
func (p *place) otherBackups(host string) (others []strategy.Node, is bool) {
	nodes, _ := p.nearBackups(host)
	i := slices.Index(nodes, p.core.self)
	if i < 0 {
		return nodes, false
	}
	return slices.Delete(slices.Clone(nodes), i, i+1), true
}

// keepers returns the other nodes that keep a node's data when it is gone: those closest to it. A live node decides
// itself which they are.
func (p *place) keepers(node strategy.Node, id xor.ID) []strategy.Node {
	near, _ := p.near(id, keepers+1)
	switch {
	case node == p.core.self:
		return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == node })
	case len(near) > 0 && near[0] == node:
		return near[:1]
	}
	near = near[:min(len(near), keepers)]
	return slices.DeleteFunc(slices.Clone(near), func(n strategy.Node) bool { return n == p.core.self })
}

func (p *place) compare(a, b strategy.Node, id xor.ID) int {
	return xor.Compare(p.nodeID(a), p.nodeID(b), id)
}

// closerThanSelf reports whether another node is closer to an id than this one.
func (p *place) closerThanSelf(n strategy.Node, id xor.ID) bool {
	return p.compare(n, p.core.self, id) < 0
}

// lowest returns the index of the last significant bit.
func (p *place) lowest() int { return len(p.id)*8 - p.width }

// eachLowBucket calls f for each occupied bucket among the n lowest ones, with its number from the lowest.
func (p *place) eachLowBucket(n int, f func(i int, nodes []strategy.Node)) {
	for i := range n {
		if nodes := p.overlay.Bucket(p.lowest() + i); len(nodes) > 0 {
			f(i, nodes)
		}
	}
}

// publish publishes a view of the overlay's present knowledge.
func (p *place) publish() {
	p.occupied = p.alone.occupiedBits(p.overlay.Occupied(), p.occupied, p.leaving)
	v := &View{until: p.freshUntil, id: p.id, width: p.width, occupied: p.occupied}
	if p.view != nil {
		v.guests, v.stopped = p.view.guests, p.view.stopped
	}
	p.setView(v)
}

// extend publishes a view with another end.
func (p *place) extend(until time.Time) {
	p.freshUntil = until
	v := *p.view
	v.until = until
	p.setView(&v)
}

// leave publishes that the node is no longer the closest to anything.
func (p *place) leave() {
	p.leaving = true
	v := *p.view
	v.until, v.guests = time.Time{}, nil
	p.setView(&v)
}

func (p *place) setView(v *View) {
	p.view = v
	p.core.do(Publish{View: v})
}

// setGuest publishes whether this node fetches a host for another node.
func (p *place) setGuest(host string, is bool) {
	p.updateSet(func(v *View) *map[string]bool { return &v.guests }, host, is)
}

// setStopped publishes whether this node has stopped fetching a host.
func (p *place) setStopped(host string, is bool) {
	p.updateSet(func(v *View) *map[string]bool { return &v.stopped }, host, is)
}

// updateSet publishes a view with a host added to one of its sets, or removed.
func (p *place) updateSet(set func(v *View) *map[string]bool, host string, is bool) {
	v := *p.view
	s := set(&v)
	if (*s)[host] == is {
		return
	}
	if *s = maps.Clone(*s); *s == nil {
		*s = map[string]bool{}
	}
	if is {
		(*s)[host] = true
	} else {
		delete(*s, host)
	}
	p.setView(&v)
}

// A View decides which hosts a node fetches, as of one moment. It is immutable, and safe for concurrent use.
type View struct {
	until    time.Time // the end of the view's validity
	id       xor.ID
	width    int
	occupied xor.ID          // bits whose buckets are occupied
	guests   map[string]bool // hosts of other nodes that this node fetches for them
	stopped  map[string]bool // hosts of this node's that it has stopped fetching, or is about to
}

// Until returns when the view expires. After that, no host is this node's.
func (v *View) Until() time.Time { return v.until }

// Ours reports whether this node fetches a host, as long as the view is valid.
func (v *View) Ours(host string) bool {
	if v.stopped[host] {
		return false
	}
	id := xor.Of("target", host).Truncate(v.width)
	return v.id.Distance(id).And(v.occupied) == xor.ID{} || v.guests[host]
}
