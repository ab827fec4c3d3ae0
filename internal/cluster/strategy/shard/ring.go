package shard

import (
	"cmp"
	"slices"

	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// ringPoints is the number of points of a node on the circle. A node's share deviates by 1/sqrt(ringPoints), 9 %, on
// average.
const ringPoints = 128

// A ring is consistent hashing (Karger et al., 1997). It consists of two slices, ordered by points.
type ring struct {
	points []uint64
	nodes  []int32
}

func newRing(h hashes, nodes []strategy.Node) *ring {
	type point struct {
		at   uint64
		node int32
	}
	all := make([]point, 0, len(nodes)*ringPoints)
	for i, n := range nodes {
		own := h.node(n)
		for k := range uint64(ringPoints) {
			all = append(all, point{splitmix.Mix(own + k*0x9e3779b97f4a7c15), int32(i)})
		}
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.node, b.node)) })
	r := &ring{points: make([]uint64, len(all)), nodes: make([]int32, len(all))}
	for i, p := range all {
		r.points[i], r.nodes[i] = p.at, p.node
	}
	return r
}

// choose returns the node of the next point.
func (r *ring) choose(hash uint64) int {
	i, _ := slices.BinarySearch(r.points, hash)
	return int(r.nodes[i%len(r.nodes)])
}
