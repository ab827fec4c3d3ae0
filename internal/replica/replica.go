// Package replica says which nodes hold a record, and what each has to send when nodes come and go: as pure functions
// of ids.
//
// A record is held by the r nodes whose ids are closest to its key by exclusive or ([kumo/internal/xor]). Huang, Zeng
// and Chen ("Method for Fully Distributed Crawler Cluster Based on Kademia") keep a node's records in lists by the
// first bit in which key and node differ, one list a k-bucket, so that most lists move whole when a node comes or goes:
// their keys need not be looked at. [Moves] keeps that idea. What differs:
//
//   - Their two procedures lose records as they are printed. A node that leaves hands over only lists nearer than its
//     nearest k-bucket with nodes in it, and not even those once no node is left on its own side; but its records lie
//     in farther lists, too, wherever farther buckets are empty. A node that joins asks its nearest neighbor; but its
//     records lie on all nodes of its nearest bucket.
//   - A record has r holders, and any number of nodes may come and go at once.
//   - Where a list must be divided, the keys of a part have some bits in common ([xor.Pattern]), so that a key is held
//     against a mask and not against each node.
package replica

import (
	"slices"

	"kumo/internal/xor"
)

// Holders are the nodes closest to a key, r or as many as there are, the closest first.
func Holders(key xor.ID, nodes []xor.ID, r int) []xor.ID {
	all := slices.Clone(nodes)
	slices.SortFunc(all, func(a, b xor.ID) int { return xor.Compare(a, b, key) })
	return all[:min(r, len(all))]
}

// A Change is what a node knows of its network before and after some nodes came or went.
type Change struct {
	Before, After []xor.ID // in no order, no two alike
	// Gone are nodes of Before, not of After, that cannot send any more. Who leaves and can still send is not among
	// them
	Gone []xor.ID
	// Capped reports whether a k-bucket of the node, by its number, may have nodes that it does not know; nil: none
	// has. A capped bucket is known to have more than r
	Capped func(bucket int) bool
}

// A Move is a part of a node's records that it sends to others, or need not hold any longer.
type Move struct {
	Keys xor.Pattern
	// List says that Keys are what the node held of a list, or of several, whole: no record's key has to be looked at.
	// If the node has others there by now, they go with them; Outside is how to be rid of those
	List bool
	To   []xor.ID // whom this node sends them: holders after, but not before
	// LookUp is how many more of their holders lie in a bucket that is capped, and have to be looked up for each record
	LookUp int
	Drop   bool // the node is none of their holders after
}

// Moves is what self, one of c.Before, has to do so that each record is at its r holders of c.After, if it was at those
// of c.Before and all others do likewise. A record comes to a new holder from one of them: from one that leaves, else
// from the one that is closest to the new holder. What is to be dropped may be once its holders have it.
func Moves(self xor.ID, r int, c Change) []Move {
	p := planner{self: self, r: r, Change: c, changed: difference(c.Before, c.After)}
	p.changed = append(p.changed, difference(c.After, c.Before)...)
	nearest := xor.Bits
	for _, id := range slices.Concat(c.Before, c.After) {
		if id != self {
			nearest = min(nearest, self.FirstDiff(id))
		}
	}
	if nearest == xor.Bits { // nobody else is there, nor was
		return nil
	}
	before, after := undecided(c.Before, r), undecided(c.After, r)
	list := xor.Bits - 1
	for ; list >= nearest || max(p.next(before), p.next(after)) >= 0; list-- {
		far := self.Bit(list) ^ 1
		p.list(xor.List(self, list), p.at(before, list, far), p.at(after, list, far))
		before, after = p.at(before, list, far^1), p.at(after, list, far^1)
	}
	p.list(xor.Prefix(self, xor.Bits-1-list), before, after) // all nearer lists have the same holders
	return p.moves
}

// Outside are the parts of the space of which self, one of nodes, is none of the r holders. Records that it has there
// all the same are not missed: they came when somebody sent a list whole, or did not know of all nodes.
func Outside(self xor.ID, nodes []xor.ID, r int) (parts []xor.Pattern) {
	var divide func(keys xor.Pattern, c choice)
	divide = func(keys xor.Pattern, c choice) {
		bit := c.next()
		switch {
		case !c.has(self):
			parts = append(parts, keys)
		case bit >= 0 && !slices.Contains(c.sure, self):
			divide(keys.With(bit, 0), c.at(bit, 0))
			divide(keys.With(bit, 1), c.at(bit, 1))
		}
	}
	divide(xor.Pattern{}, undecided(nodes, r))
	return parts
}

func difference(a, b []xor.ID) (only []xor.ID) {
	for _, id := range a {
		if !slices.Contains(b, id) {
			only = append(only, id)
		}
	}
	return only
}
