package shard

import (
	"cmp"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// FreeSlot is the slot that a node takes when it joins: the one that its hash names, or the next free one. It is -1 if
// there is none: then the node must be refused, because with all slots taken nothing is spread over the nodes, and it
// would never own a host. It depends on nothing but Slots, Seed, the members and the node.
func (c Config) FreeSlot(members []strategy.Member, node strategy.Node) int {
	c.Slots = cmp.Or(c.Slots, DefaultSlots)
	taken := make([]bool, c.Slots)
	for _, m := range members {
		if m.Slot >= 0 && m.Slot < c.Slots {
			taken[m.Slot] = true
		}
	}
	slots := uint64(c.Slots)
	first := splitmix.Mix(xxhash.Sum64String(string(node))^newHashes(c.Seed).first) % slots
	for i := range slots {
		if slot := int((first + i) % slots); !taken[slot] {
			return slot
		}
	}
	return -1
}
