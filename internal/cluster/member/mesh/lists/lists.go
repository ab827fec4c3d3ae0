// Package lists implements the URL history of Huang, Zeng and Chen ("Method for Fully Distributed Crawler Cluster Based
// on Kademia", 2014), which moves between nodes in whole lists.
//
// A node has a record if it is the closest node to the record's id. It stores records in lists, by the first bit in
// which a record and the node differ: list i has the records for which [xor.ID.FirstDiff] is i. The ids that belong to
// a list are a [Range]: all have the same first bits. When a node joins or leaves, often all ids of a range have the
// same closest nodes before and after, so the list moves, or stays, without comparing its records one by one.
//
// # Corrections
//
// The paper's procedures lose records. The corrections are:
//
//   - Leave. The paper passes on only the lists below the nearest non-empty bucket i, since no record would differ from
//     the node in a higher bit. That is wrong if a farther bucket is empty: its list has records, too. Also, if no node
//     remains that agrees with a record in the bits above, the paper stops; here the record goes to the closest of the
//     nodes that do not agree.
//   - Join. The paper's new node asks a neighbor in its nearest bucket. Here it asks all nodes of that bucket: with a
//     new node 00 and nodes 10 and 11, the record 01 is on 11.
//   - If a bucket is full, nodes may exist that it does not list. Then the closest node is looked up for each record.
package lists

import (
	"maps"
	"slices"

	"kumo/internal/base/xor"
)

// A Range contains the ids that begin with the first Bits bits of Prefix. Its other bits are 0.
type Range struct {
	Prefix xor.ID
	Bits   int
}

// Of returns the range of a node's list. List -1 has the node's own id.
func Of(self xor.ID, list int) Range {
	if list < 0 {
		return Range{self, xor.Bits}
	}
	return Range{flip(self, list).Truncate(xor.Bits - list), xor.Bits - list}
}

// Contains reports whether an id is in the range.
func (r Range) Contains(id xor.ID) bool { return id.Truncate(r.Bits) == r.Prefix }

func flip(id xor.ID, index int) xor.ID { return id.Distance(xor.ID{}.Set(index)) }

// Closest returns which nodes are the k closest to the ids of a range, as indexes: those in all are among the k closest
// to every id. Unless rest is 0, the other ones depend on the id: they are the rest closest of those in some.
//
// The distances of two nodes from an id differ first in the first bit in which the nodes differ, and the node that
// agrees with the id there is closer. So Closest goes through the bits of the range, and divides the nodes that agree
// in all bits so far: those that agree in the next bit, too, are closer than the others. This is the division into Left
// and Right of the paper, for any k.
func Closest(nodes []xor.ID, r Range, k int) (all, some []int, rest int) {
	left := make([]int, len(nodes))
	for i := range left {
		left[i] = i
	}
	for depth := 0; len(left) > k; depth++ {
		if depth == r.Bits {
			return all, left, k
		}
		bit := xor.Bits - 1 - depth
		var same, other []int
		for _, i := range left {
			if nodes[i].Bit(bit) == r.Prefix.Bit(bit) {
				same = append(same, i)
			} else {
				other = append(other, i)
			}
		}
		if len(same) >= k {
			left = same
		} else {
			all, left, k = append(all, same...), other, k-len(same)
		}
	}
	return append(all, left...), nil, 0
}

// A History stores the ids of records at a node.
type History struct {
	self  xor.ID
	lists map[int]map[xor.ID]bool
	len   int
}

// New returns an empty history of a node.
func New(self xor.ID) *History { return &History{self: self, lists: map[int]map[xor.ID]bool{}} }

// Len returns the number of records.
func (h *History) Len() int { return h.len }

// Has reports whether the history has a record. It searches one list.
func (h *History) Has(id xor.ID) bool { return h.lists[h.self.FirstDiff(id)][id] }

// Add adds a record.
func (h *History) Add(id xor.ID) {
	i := h.self.FirstDiff(id)
	list := h.lists[i]
	if list == nil {
		list = map[xor.ID]bool{}
		h.lists[i] = list
	}
	if !list[id] {
		list[id] = true
		h.len++
	}
}

// A Move is records for another node.
type Move struct {
	To  xor.ID
	IDs []xor.ID
}

// Counts are the numbers of records that a procedure has processed in each way.
type Counts struct {
	Whole    int // moved with their list
	Compared int // compared with nodes one by one
	LookedUp int // assigned by a lookup of the closest node
	Kept     int // not looked at
}

// Contacts are the other nodes that a node knows.
type Contacts struct {
	Nodes []xor.ID
	// Full reports whether a bucket may lack some nodes, and Find looks up the closest other node to an id. Both may be
	// nil if all nodes are known.
	Full func(bucket int) bool
	Find func(id xor.ID) xor.ID
}

// mayLack reports whether there may be further nodes in a candidate's bucket.
func (c *Contacts) mayLack(self xor.ID, candidates []int) bool {
	return c.Full != nil && slices.ContainsFunc(candidates, func(i int) bool { return c.Full(self.FirstDiff(c.Nodes[i])) })
}

// Leave removes all records, and returns the nodes that are the closest to them when this node has left. Without other
// nodes, it keeps the records.
func (h *History) Leave(c Contacts) (moves []Move, n Counts) {
	if len(c.Nodes) == 0 {
		return nil, Counts{Kept: h.len}
	}
	to := map[xor.ID][]xor.ID{}
	for _, i := range slices.Sorted(maps.Keys(h.lists)) {
		r := Of(h.self, i)
		all, some, rest := Closest(c.Nodes, r, 1)
		candidates := append(all, some...)
		switch {
		case c.mayLack(h.self, candidates):
			for id := range h.lists[i] {
				n.LookedUp++
				node := c.Find(id)
				to[node] = append(to[node], id)
			}
		case rest == 0:
			n.Whole += len(h.lists[i])
			node := c.Nodes[candidates[0]]
			to[node] = slices.AppendSeq(to[node], maps.Keys(h.lists[i]))
		default:
			for id := range h.lists[i] {
				n.Compared++
				node := closestOf(c.Nodes, candidates, id)
				to[node] = append(to[node], id)
			}
		}
	}
	h.lists, h.len = map[int]map[xor.ID]bool{}, 0
	return sorted(to), n
}

func closestOf(nodes []xor.ID, candidates []int, id xor.ID) xor.ID {
	return nodes[slices.MinFunc(candidates, func(a, b int) int { return xor.Compare(nodes[a], nodes[b], id) })]
}

func sorted(to map[xor.ID][]xor.ID) (moves []Move) {
	for node, ids := range to {
		moves = append(moves, Move{node, ids})
	}
	slices.SortFunc(moves, func(a, b Move) int { return slices.Compare(a.To[:], b.To[:]) })
	return moves
}

// Join removes the records that belong to a new node, and returns them. This node must be in the new node's nearest
// bucket that is not empty.
func (h *History) Join(node xor.ID) (ids []xor.ID, n Counts) {
	fd := h.self.FirstDiff(node)
	for i, list := range h.lists {
		switch {
		case i < fd:
			n.Kept += len(list)
		case i == fd:
			n.Whole += len(list)
			ids = slices.AppendSeq(ids, maps.Keys(list))
			delete(h.lists, i)
		default:
			n.Compared += len(list)
			for id := range list {
				if id.Bit(fd) == node.Bit(fd) {
					ids = append(ids, id)
					delete(list, id)
				}
			}
		}
	}
	h.len -= len(ids)
	return ids, n
}

// A Part is a range of ids, and whether it moves or stays as a whole.
type Part struct {
	Range
	Whole bool
}

// Parts divides all ids of a width in bits into the lists of a node, as far as necessary: lists below which uniform
// holds for all are one part. uniform reports whether all ids of a range have the same closest nodes.
func Parts(self xor.ID, width int, uniform func(Range) bool) (parts []Part) {
	for depth := 0; ; depth++ {
		rest := Range{self.Truncate(depth), depth} // the list of that depth, and all lists below
		if whole := uniform(rest); whole || depth == width {
			return append(parts, Part{rest, whole})
		}
		list := Of(self, xor.Bits-1-depth)
		parts = append(parts, Part{list, uniform(list)})
	}
}
