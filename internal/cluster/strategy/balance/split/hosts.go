package split

import (
	"cmp"
	"math"
	"slices"
)

// Counts are the units of each node, if hosts of such sizes have such owners.
func Counts(nodes int, sizes, owners []int) []int {
	counts := make([]int, nodes)
	for k, owner := range owners {
		counts[owner] += sizes[k]
	}
	return counts
}

// Hosts gives whole hosts, of such sizes in units, to nodes, so that the makespan is small: the largest first, each to
// the node that is done with it first (longest processing time); then hosts of the node that takes longest are moved,
// or exchanged for others, while that helps. Nodes have at least one; sizes are not negative. It is deterministic.
//
// With nodes that only differ in speed (times proportional to sizes) the makespan is at most 1.58 times the least
// (Kovács, 2010; Friesen, 1987, had 5/3). With other times no factor holds for all; LowerBound tells how near it is.
func Hosts(nodes []Time, sizes []int) (owners []int) {
	owners = longestFirst(nodes, sizes)
	improve(nodes, sizes, owners)
	return owners
}

// LowerBound is a time that no split of whole hosts is below: that of the best split if they could be cut, or of the
// largest host at the node that is fastest with it.
func LowerBound(nodes []Time, sizes []int) float64 {
	sum, largest := 0, 0
	for _, size := range sizes {
		sum, largest = sum+size, max(largest, size)
	}
	alone := math.Inf(1)
	for _, f := range nodes {
		alone = min(alone, f.at(largest))
	}
	return max(alone, Makespan(nodes, Exact(nodes, sum)))
}

// longestFirst gives hosts away, the largest first. There is a queue for each size, so times are evaluated once a host,
// and once a node for each size.
func longestFirst(nodes []Time, sizes []int) []int {
	owners, counts := make([]int, len(sizes)), make([]int, len(nodes))
	order := make([]int, len(sizes))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var q *queue
	for at, k := range order {
		size := sizes[k]
		if at == 0 || size != sizes[order[at-1]] {
			q = newQueue(nodes, counts, size)
		}
		i := q.first()
		owners[k] = i
		counts[i] += size
		q.updateFirst(nodes[i].at(counts[i] + size))
	}
	return owners
}
