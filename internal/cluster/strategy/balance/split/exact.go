package split

import "math/bits"

// Exact returns the split with the least makespan; there must be at least one node. Of several such splits it is the
// result of assigning unit by unit, each to the node that would finish it first, and in a tie to the first such node.
//
// Assigning blocks is faster (Hochbaum, 1994). Let each block go to the node that would finish one more unit first. A
// node's share then, less its last block, is at most its final share. For if node i had fewer in the end, some other
// node j would have more than it had when i got that block; but i was preferred to j then, with more than it has in the
// end. So all but the last blocks are kept, and the rest is assigned in blocks of half the size, down to single units.
// It takes O(M log(N/M)) evaluations of times, for M nodes and N units.
func Exact(nodes []Time, units int) []int {
	counts := make([]int, len(nodes))
	for block := firstBlock(units, len(nodes)); ; block /= 2 {
		units = give(nodes, counts, units, block)
		if block == 1 {
			return counts
		}
	}
}

// firstBlock returns the size of the first blocks, a power of two. A node gets about one or two of them.
func firstBlock(units, nodes int) int {
	return 1 << max(bits.Len(uint(units/nodes))-2, 0)
}

// give adds blocks to the counts, then takes each node's last block away again unless blocks are single units. It
// returns the number of units left.
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

// A queue is a heap of nodes by the time at which they would finish more work; ties go to the first node.
type queue struct {
	times []float64 // by node
	heap  []int
}

// newQueue returns the queue in which each node gets more units in addition to its count.
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

// updateFirst sets the first node's time, which must not decrease.
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
