package central

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// maxForeign is the size of one of the two generations of other nodes' hosts.
const maxForeign = 1 << 16

// maxForeignAge is the maximum duration of a generation.
const maxForeignAge = 5 * time.Minute

// owners are the host owners that a node knows, from which it builds views.
type owners struct {
	*clusterState
	view       *view
	own        *trie
	foreign    [2]*trie
	youngCount int             // hosts in foreign[0]
	rotateAt   time.Time       // end of the young generation; zero while both are empty
	nodes      []strategy.Node // by number; "" if departed. Shared with views, so copied before a change
	numbers    map[strategy.Node]uint32
	dirty      bool // the view is outdated
	granted    int  // hosts that this node owns, and how many of them are parked
	parked     int
}

func newOwners(cluster *clusterState) *owners {
	return &owners{clusterState: cluster, view: &view{self: cluster.cfg.Self}, numbers: map[strategy.Node]uint32{}}
}

// publish updates the view if it is outdated, and reports whether it was.
func (o *owners) publish() bool {
	if !o.dirty {
		return false
	}
	o.dirty = false
	o.view = &view{self: o.cfg.Self, own: o.own, foreign: o.foreign, nodes: o.nodes}
	return true
}

// grant makes this node the owner of a host.
func (o *owners) grant(host string, value uint32) {
	k := key(host)
	if was, known := o.own.get(k); known && was == value {
		return
	}
	if was, known := o.own.get(k); known && was == ownParked {
		o.parked--
	}
	if value == ownParked {
		o.parked++
	}
	var added bool
	if o.own, added = o.own.set(k, value); added {
		o.granted++
	}
	o.dirty = true
}

func (o *owners) cedeTo(host string, to strategy.Node) {
	k := key(host)
	if value, mine := o.own.get(k); mine {
		if o.granted--; value == ownParked {
			o.parked--
		}
		o.own, _ = o.own.without(k)
		o.dirty = true
	}
	if !o.alive[to] {
		return // departed or unknown here; the caller asks again later
	}
	n, known := o.numbers[to]
	if !known {
		n = uint32(len(o.nodes))
		o.numbers[to] = n
		o.nodes = append(o.nodes, to)
	}
	if v, known := o.foreign[0].get(k); known && v == n {
		return
	}
	if o.youngCount >= maxForeign {
		o.rotate()
	}
	if o.rotateAt.IsZero() {
		o.rotateAt = o.now.Add(maxForeignAge)
	}
	var added bool
	if o.foreign[0], added = o.foreign[0].set(k, n); added {
		o.youngCount++
	}
	o.dirty = true
}

// rotate starts a new generation of other nodes' hosts. A node without links to a host is not informed of a new owner,
// so outdated entries must expire.
func (o *owners) rotate() {
	if o.foreign[0] != nil || o.foreign[1] != nil {
		o.dirty = true
	}
	o.foreign[1], o.foreign[0], o.youngCount = o.foreign[0], nil, 0
	o.rotateAt = time.Time{}
	if o.foreign[1] != nil {
		o.rotateAt = o.now.Add(maxForeignAge)
	}
}

// forgetOwner drops the known owner of another node's host.
func (o *owners) forgetOwner(host string) {
	k := key(host)
	for i := range o.foreign {
		var was bool
		if o.foreign[i], was = o.foreign[i].without(k); was {
			o.dirty = true
		}
	}
}

// forgetNode drops the ownership of a dead node.
func (o *owners) forgetNode(dead strategy.Node) {
	if n, known := o.numbers[dead]; known {
		o.nodes = slices.Clone(o.nodes)
		o.nodes[n] = ""
		delete(o.numbers, dead)
		o.dirty = true
	}
}
