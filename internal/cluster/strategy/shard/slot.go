package shard

import (
	"cmp"

	"github.com/cespare/xxhash/v2"

	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// FreeSlot returns the slot for a joining node: the one given by its hash, or the next free one. It returns -1 if there
// is none. Such a node must be refused: when all slots are taken, no hosts are spread over the nodes, so it would never
// own a host. The result depends only on Slots, Seed, the members and the node.
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
