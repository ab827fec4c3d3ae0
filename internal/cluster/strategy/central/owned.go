package central

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// maxForeign is how many hosts of others a generation has, of which there are two.
const maxForeign = 1 << 16

// maxForeignAge is how long a generation takes at most.
const maxForeignAge = 5 * time.Minute

// owners are the owners of hosts as one node knows them: what the views are made of.
type owners struct {
	*clusterState
	view       *view
	own        *trie
	foreign    [2]*trie
	youngCount int             // hosts in the younger of the two
	rotateAt   time.Time       // when that becomes the elder; zero while there are none
	nodes      []strategy.Node // by number; "" if it is none any more. Views share it: it is changed as a copy
	numbers    map[strategy.Node]uint32
	dirty      bool // the view is an old one
	granted    int  // own hosts, and those of them that are parked
	parked     int
}

func newOwners(around *clusterState) *owners {
	return &owners{clusterState: around, view: &view{self: around.cfg.Self}, numbers: map[strategy.Node]uint32{}}
}

// publish makes a new view if the last is an old one, and reports whether it was.
func (o *owners) publish() bool {
	if !o.dirty {
		return false
	}
	o.dirty = false
	o.view = &view{self: o.cfg.Self, own: o.own, foreign: o.foreign, nodes: o.nodes}
	return true
}

// grant makes a host this node's.
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
		return // or this node does not know it yet: it will ask again
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

// rotate begins a new generation of what is known of others' hosts. Who has no links to a host is not told that it has
// another owner; in the end nobody believes in the one before.
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

// forgetOwner forgets whose a host is that is another's.
func (o *owners) forgetOwner(host string) {
	k := key(host)
	for i := range o.foreign {
		var was bool
		if o.foreign[i], was = o.foreign[i].without(k); was {
			o.dirty = true
		}
	}
}

// forgetNode forgets whose hosts were a dead node's.
func (o *owners) forgetNode(dead strategy.Node) {
	if n, known := o.numbers[dead]; known {
		o.nodes = slices.Clone(o.nodes)
		o.nodes[n] = ""
		delete(o.numbers, dead)
		o.dirty = true
	}
}
