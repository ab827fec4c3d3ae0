package hub

import (
	"slices"
	"time"

	"kumo/internal/strategy"
)

// maxForeign is how many hosts of others a generation has, of which there are two.
const maxForeign = 1 << 16

// foreignAge is how long a generation takes at most.
const foreignAge = 5 * time.Minute

func (h *Hub) publish() {
	if h.dirty {
		h.dirty = false
		h.view = &view{self: h.cfg.Self, own: h.own, foreign: h.foreign, nodes: h.nodes}
		h.do(strategy.Changed{})
	}
}

// grant makes a host this node's.
func (h *Hub) grant(host string, value uint32) {
	k := key(host)
	if was, known := h.own.get(k); known && was == value {
		return
	}
	if was, known := h.own.get(k); known && was == ownParked {
		h.parked--
	}
	if value == ownParked {
		h.parked++
	}
	var added bool
	if h.own, added = h.own.set(k, value); added {
		h.granted++
	}
	h.dirty = true
}

// cedeTo makes a host another's.
func (h *Hub) cedeTo(host string, to strategy.Node) {
	k := key(host)
	if value, mine := h.own.get(k); mine {
		if h.granted--; value == ownParked {
			h.parked--
		}
		h.own, _ = h.own.without(k)
		h.dirty = true
	}
	if !h.alive[to] {
		return // or this node does not know it yet: it will ask again
	}
	n, known := h.numbers[to]
	if !known {
		n = uint32(len(h.nodes))
		h.numbers[to] = n
		h.nodes = append(h.nodes, to)
	}
	if v, known := h.foreign[0].get(k); known && v == n {
		return
	}
	if h.young >= maxForeign {
		h.age()
	}
	if h.agesAt.IsZero() {
		h.agesAt = h.now.Add(foreignAge)
	}
	var added bool
	if h.foreign[0], added = h.foreign[0].set(k, n); added {
		h.young++
	}
	h.dirty = true
}

// age begins a new generation of what is known of others' hosts. Who has no links to a host is not told that it has
// another owner; in the end nobody believes in the one before.
func (h *Hub) age() {
	if h.foreign[0] != nil || h.foreign[1] != nil {
		h.dirty = true
	}
	h.foreign[1], h.foreign[0], h.young = h.foreign[0], nil, 0
	h.agesAt = time.Time{}
	if h.foreign[1] != nil {
		h.agesAt = h.now.Add(foreignAge)
	}
}

// forgetOwner forgets whose a host is that is another's.
func (h *Hub) forgetOwner(host string) {
	k := key(host)
	for i := range h.foreign {
		var was bool
		if h.foreign[i], was = h.foreign[i].without(k); was {
			h.dirty = true
		}
	}
}

// forgetNode forgets whose hosts were a dead node's.
func (h *Hub) forgetNode(dead strategy.Node) {
	if n, known := h.numbers[dead]; known {
		h.nodes = slices.Clone(h.nodes)
		h.nodes[n] = ""
		delete(h.numbers, dead)
		h.dirty = true
	}
}
