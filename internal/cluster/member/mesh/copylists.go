package mesh

import (
	"slices"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh/lists"
	"kumo/internal/cluster/strategy"
)

// Moves counts the hosts that a node's sweeps have gone over.
type Moves struct {
	Compared int // hosts whose backups were computed one by one
	Whole    int // hosts that were sent with their list
	Kept     int // lists that were not read, because they stay
}

// Add returns the sum of two counts.
func (m Moves) Add(o Moves) Moves {
	return Moves{m.Compared + o.Compared, m.Whole + o.Whole, m.Kept + o.Kept}
}

// By lists, the part of a sweep between two neighborhoods is computed for a list instead of for each host, as in the
// paper: see package lists. A list is compared host by host if its backups depend on the host, or if this node may not
// know all nodes around it.

// divide divides the history into parts, for a sweep that starts.
func (c *copies) divide(now []neighbor) []lists.Part {
	before, after := idsOf(c.sweep.old), idsOf(now)
	return lists.Parts(c.place.id, c.place.width, func(r lists.Range) bool {
		_, _, depends := lists.Closest(before, r, c.place.backups)
		if depends > 0 {
			return false
		}
		_, _, depends = lists.Closest(after, r, c.place.backups)
		_, exact := c.place.near(c.farthest(r), c.place.backups)
		return depends == 0 && exact
	})
}

func idsOf(all []neighbor) []xor.ID {
	ids := make([]xor.ID, len(all))
	for i, n := range all {
		ids[i] = n.id
	}
	return ids
}

// farthest returns an id of a range that agrees with this node in as few bits as any. If this node knows all nodes
// around that id, it does for the whole range.
func (c *copies) farthest(r lists.Range) xor.ID {
	if r.Bits < c.place.width && r.Contains(c.place.id) {
		return lists.Of(c.place.id, xor.Bits-1-r.Bits).Prefix
	}
	return r.Prefix
}

// sweepPart sweeps over the next part in which a host may have to be sent, or ends the sweep.
func (c *copies) sweepPart() {
	for ; len(c.sweep.parts) > 0; c.sweep.parts = c.sweep.parts[1:] {
		part := c.sweep.parts[0]
		if part.Whole && !c.again && c.stays(part.Range) {
			c.moved.Kept++
			continue
		}
		c.core.do(Sweep{In: part.Range})
		return
	}
	c.sweep.running = false
	if c.again {
		c.sweepSoon()
	}
}

// backupsOf returns the other backups of all hosts of a range, whether this node is one, too, and their former backups.
func (c *copies) backupsOf(r lists.Range) (others []strategy.Node, is bool, old []strategy.Node) {
	id := c.farthest(r)
	nodes, _ := c.place.near(id, c.place.backups)
	others = slices.DeleteFunc(slices.Clone(nodes), func(n strategy.Node) bool { return n == c.core.self })
	return others, len(others) < len(nodes), c.oldBackups(id)
}

// stays reports whether this node is still a backup of all hosts of a range, and no other node has become one.
func (c *copies) stays(r lists.Range) bool {
	others, is, old := c.backupsOf(r)
	return is && !slices.ContainsFunc(others, func(n strategy.Node) bool { return !slices.Contains(old, n) })
}

// copyWhole sends hosts that have the same backups.
func (c *copies) copyWhole(r lists.Range, hosts []string) {
	others, is, old := c.backupsOf(r)
	for _, host := range hosts {
		c.moved.Whole++
		c.copyTo(host, c.pendingCopy(host), slices.Clone(others), is, old)
	}
}
