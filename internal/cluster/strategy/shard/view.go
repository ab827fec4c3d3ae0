package shard

import (
	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/strategy"
)

// noNode marks an empty slot.
const noNode = -1

// A view is the placement for one list of members.
type view struct {
	hash   hashes
	domain bool
	nodes  []strategy.Node // sorted
	slots  []int32         // by slot: index of its node, or noNode
	second chooser
}

// A chooser is a second level: it chooses one of n > 0 nodes for a hash.
type chooser interface{ choose(hash uint64) int }

var _ strategy.View = (*view)(nil)

// Place returns the view for a list of members. A member without a slot, or with a slot beyond the table, only gets its
// share of the hosts of empty slots. If two members have the same slot, which is not allowed, the first has it under
// every list.
func (s *sharding) Place(members []strategy.Member) strategy.View {
	v := &view{hash: newHashes(s.cfg.Seed), domain: s.cfg.Key == ByDomain, nodes: make([]strategy.Node, len(members)),
		slots: make([]int32, s.cfg.Slots)}
	for i := range v.slots {
		v.slots[i] = noNode
	}
	for i, m := range members {
		v.nodes[i] = m.Node
		if m.Slot >= 0 && m.Slot < len(v.slots) && v.slots[m.Slot] == noNode {
			v.slots[m.Slot] = int32(i)
		}
	}
	v.second = s.chooser(v)
	return v
}

func (s *sharding) chooser(v *view) chooser {
	switch s.cfg.Second {
	case Jump:
		return jump(len(v.nodes))
	case Paper:
		return paper(len(v.nodes))
	case Ring:
		return newRing(v.hash, v.nodes)
	default:
		return newRendezvous(v.hash, v.nodes)
	}
}

// Owner takes about 20 ns if the host's slot is taken. Otherwise rendezvous hashing adds about 2 ns per node.
func (v *view) Owner(host string) (strategy.Node, strategy.State) {
	if len(v.nodes) == 0 {
		return "", strategy.Unknown
	}
	if v.domain {
		host = weburl.Domain(item.HostnameOf(host))
	}
	first, second := v.hash.of(host)
	if i := v.slots[first%uint64(len(v.slots))]; i != noNode {
		return v.nodes[i], strategy.Owned
	}
	return v.nodes[v.second.choose(second)], strategy.Owned
}
