package shard

import (
	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// rendezvous holds the nodes' hashes.
type rendezvous []uint64

func newRendezvous(h hashes, nodes []strategy.Node) rendezvous {
	r := make(rendezvous, len(nodes))
	for i, n := range nodes {
		r[i] = h.node(n)
	}
	return r
}

// choose returns the node whose hash with the host is greatest, in a tie the first, so that the result does not depend
// on other nodes.
func (r rendezvous) choose(hash uint64) int {
	best, most := 0, uint64(0)
	for i, node := range r {
		if w := splitmix.Mix(hash ^ node); w > most {
			best, most = i, w
		}
	}
	return best
}
