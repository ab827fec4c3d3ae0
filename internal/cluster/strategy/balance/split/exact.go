package split

import "math/bits"

// Exact is the split with the least makespan; nodes have at least one. Of several such splits it is the one to which
// giving unit by unit leads, each to the node that would be done with it first, of equal ones to the first.
//
// Giving blocks leads there sooner (Hochbaum, 1994). Let each block go to the node that would be done first with one
// unit more. What a node has then, less its last block, is no more than it has in the end. For if node i had fewer in
// the end, some other node, j, would have more than it had when i got that block; but i was preferred to j then, with
// more than it has in the end. So all but the last blocks are kept, and the rest is given in blocks of half the size,
// down to single units. It takes O(M log(N/M)) evaluations of times, for M nodes and N units.
func Exact(nodes []Time, units int) []int {
	counts := make([]int, len(nodes))
	for block := firstBlock(units, len(nodes)); ; block /= 2 {
		units = give(nodes, counts, units, block)
		if block == 1 {
			return counts
		}
	}
}

// firstBlock is a power of two, of which a node is to get one or two.
func firstBlock(units, nodes int) int {
	return 1 << max(bits.Len(uint(units/nodes))-2, 0)
}

// give adds blocks to the counts, and takes the last of each node away again if they are more than one unit. It returns
// the units that are left.
func give(nodes []Time, counts []int, units, block int) int {
	q := newQueue(nodes, counts, 1)
	given := make([]bool, len(nodes))
	for ; units >= block; units -= block {
		i := q.first()
		counts[i] += block
		given[i] = true
		q.updateFirst(nodes[i].at(counts[i] + 1))
	}
	if block == 1 {
		return units
	}
	for i := range given {
		if given[i] {
			counts[i] -= block
			units += block
		}
	}
	return units
}

// A queue has nodes by the time at which they would be done with more, of equal ones the first in front.
type queue struct {
	times []float64 // by node
	heap  []int
}

// newQueue has each node with its count and so many units more.
func newQueue(nodes []Time, counts []int, more int) *queue {
	q := &queue{make([]float64, len(nodes)), make([]int, len(nodes))}
	for i, f := range nodes {
		q.times[i], q.heap[i] = f.at(counts[i]+more), i
	}
	for at := len(q.heap)/2 - 1; at >= 0; at-- {
		q.sink(at)
	}
	return q
}

func (q *queue) first() int { return q.heap[0] }

// updateFirst gives the first another time, not before the one that it had.
func (q *queue) updateFirst(time float64) {
	q.times[q.first()] = time
	q.sink(0)
}

func (q *queue) before(i, j int) bool {
	return q.times[i] < q.times[j] || q.times[i] == q.times[j] && i < j
}

func (q *queue) sink(at int) {
	for {
		child := 2*at + 1
		if child >= len(q.heap) {
			return
		}
		if right := child + 1; right < len(q.heap) && q.before(q.heap[right], q.heap[child]) {
			child = right
		}
		if !q.before(q.heap[child], q.heap[at]) {
			return
		}
		q.heap[at], q.heap[child] = q.heap[child], q.heap[at]
		at = child
	}
}
