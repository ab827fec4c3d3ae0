package central

import (
	"slices"
	"time"

	"kumo/internal/cluster/strategy"
)

// maxForeign is how many hosts of others a generation has, of which there are two.
const maxForeign = 1 << 16

// foreignAge is how long a generation takes at most.
const foreignAge = 5 * time.Minute

func (s *Strategy) publish() {
	if s.dirty {
		s.dirty = false
		s.view = &view{self: s.cfg.Self, own: s.own, foreign: s.foreign, nodes: s.nodes}
		s.do(strategy.Changed{})
	}
}

// grant makes a host this node's.
func (s *Strategy) grant(host string, value uint32) {
	k := key(host)
	if was, known := s.own.get(k); known && was == value {
		return
	}
	if was, known := s.own.get(k); known && was == ownParked {
		s.parked--
	}
	if value == ownParked {
		s.parked++
	}
	var added bool
	if s.own, added = s.own.set(k, value); added {
		s.granted++
	}
	s.dirty = true
}

// cedeTo makes a host another's.
func (s *Strategy) cedeTo(host string, to strategy.Node) {
	k := key(host)
	if value, mine := s.own.get(k); mine {
		if s.granted--; value == ownParked {
			s.parked--
		}
		s.own, _ = s.own.without(k)
		s.dirty = true
	}
	if !s.alive[to] {
		return // or this node does not know it yet: it will ask again
	}
	n, known := s.numbers[to]
	if !known {
		n = uint32(len(s.nodes))
		s.numbers[to] = n
		s.nodes = append(s.nodes, to)
	}
	if v, known := s.foreign[0].get(k); known && v == n {
		return
	}
	if s.young >= maxForeign {
		s.age()
	}
	if s.agesAt.IsZero() {
		s.agesAt = s.now.Add(foreignAge)
	}
	var added bool
	if s.foreign[0], added = s.foreign[0].set(k, n); added {
		s.young++
	}
	s.dirty = true
}

// age begins a new generation of what is known of others' hosts. Who has no links to a host is not told that it has
// another owner; in the end nobody believes in the one before.
func (s *Strategy) age() {
	if s.foreign[0] != nil || s.foreign[1] != nil {
		s.dirty = true
	}
	s.foreign[1], s.foreign[0], s.young = s.foreign[0], nil, 0
	s.agesAt = time.Time{}
	if s.foreign[1] != nil {
		s.agesAt = s.now.Add(foreignAge)
	}
}

// forgetOwner forgets whose a host is that is another's.
func (s *Strategy) forgetOwner(host string) {
	k := key(host)
	for i := range s.foreign {
		var was bool
		if s.foreign[i], was = s.foreign[i].without(k); was {
			s.dirty = true
		}
	}
}

// forgetNode forgets whose hosts were a dead node's.
func (s *Strategy) forgetNode(dead strategy.Node) {
	if n, known := s.numbers[dead]; known {
		s.nodes = slices.Clone(s.nodes)
		s.nodes[n] = ""
		delete(s.numbers, dead)
		s.dirty = true
	}
}
