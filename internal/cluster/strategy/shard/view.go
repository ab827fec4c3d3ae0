package shard

import (
	"kumo/internal/base/item"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/strategy"
)

// noNode is an empty slot.
const noNode = -1

// A view is the placement that follows from one list of members.
type view struct {
	hash   hashes
	domain bool
	nodes  []strategy.Node // sorted
	slots  []int32         // for each slot the index of its node, or nobody
	second chooser
}

// A chooser is a second level: it picks one of n > 0 nodes for a hash.
type chooser interface{ choose(hash uint64) int }

var _ strategy.View = (*view)(nil)

// Place returns the view for a list of members. A member without a slot, or with one beyond the table, has only its
// share of the hosts of empty slots. Where two members have the same slot, which is against the rules, the first has it
// under every list.
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

// Owner takes some 20 ns where the host's slot is taken. Else rendezvous hashing adds some 2 ns for each node.
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
