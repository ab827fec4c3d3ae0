package split

import (
	"cmp"
	"hash/fnv"
	"io"
	"math"
	"slices"
)

// HashHosts gives each host to a node by a hash of its name alone, whatever nodes can do and hosts have.
func HashHosts(nodes int, names []string) (owners []int) {
	owners = make([]int, len(names))
	for k, name := range names {
		h := fnv.New64a()
		_, _ = io.WriteString(h, name)
		owners[k] = int(h.Sum64() % uint64(nodes))
	}
	return owners
}

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

// longestFirst gives hosts away, the largest first.
func longestFirst(nodes []Time, sizes []int) []int {
	owners, counts := make([]int, len(sizes)), make([]int, len(nodes))
	if len(sizes) == 0 {
		return owners
	}
	order := make([]int, len(sizes))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	least := slices.Min(sizes)
	q := newQueue(nodes, counts, least)
	for _, k := range order {
		place := soonest{at: -1, time: math.Inf(1)}
		place.find(q, nodes, counts, sizes[k], 0)
		i := q.heap[place.at]
		owners[k] = i
		counts[i] += sizes[k]
		q.times[i] = nodes[i].at(counts[i] + least)
		q.sink(place.at)
	}
	return owners
}

// soonest is where in a queue the node stands that is done first with one more host.
type soonest struct {
	at   int
	time float64
}

// find looks at the queue from one place down, as far as nodes could be done with the least host in time: where many
// hosts are small, that is a few.
func (s *soonest) find(q *queue, nodes []Time, counts []int, size, at int) {
	if at >= len(q.heap) || q.times[q.heap[at]] > s.time {
		return
	}
	i := q.heap[at]
	time := nodes[i].at(counts[i] + size)
	if s.at < 0 || time < s.time || time == s.time && i < q.heap[s.at] {
		*s = soonest{at, time}
	}
	s.find(q, nodes, counts, size, 2*at+1)
	s.find(q, nodes, counts, size, 2*at+2)
}
