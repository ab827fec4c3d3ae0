package split

import (
	"cmp"
	"math"
	"slices"
)

// Counts returns the units of each node, given the sizes and owners of hosts.
func Counts(nodes int, sizes, owners []int) []int {
	counts := make([]int, nodes)
	for k, owner := range owners {
		counts[owner] += sizes[k]
	}
	return counts
}

// Hosts assigns whole hosts, with sizes in units, to nodes so that the makespan is short. It assigns the largest host
// first, each to the node that finishes it first (longest processing time). Then it moves hosts of the node that takes
// longest, or exchanges them for others, while that helps. There must be at least one node; sizes are not negative. The
// result is deterministic.
//
// If nodes only differ in speed (times proportional to sizes) the makespan is at most 1.58 times the shortest (Kovács,
// 2010; Friesen, 1987, had 5/3). For other times there is no such factor; LowerBound gives a limit.
func Hosts(nodes []Time, sizes []int) (owners []int) {
	owners = longestFirst(nodes, sizes)
	improve(nodes, sizes, owners)
	return owners
}

// LowerBound returns a lower bound for the makespan of whole hosts: that of the best split of single units, or the
// largest host's time on its fastest node, whichever is longer.
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

// longestFirst assigns hosts, the largest first. It has one queue per size, so it evaluates one time per host, and one
// per node and size.
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
