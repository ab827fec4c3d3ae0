package quorum

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"kumo/internal/cluster/strategy"
)

// TableKey is where the table is in the registry, and leaseKey the lease of a node.
const TableKey = "table"

// LeasePrefix is what the keys of leases begin with.
const LeasePrefix = "lease/"

func leaseKey(n strategy.Node) string { return LeasePrefix + string(n) }

// A Table says who takes part in a crawl.
type Table struct {
	Epoch   uint64            `json:"epoch"`
	Settled uint64            `json:"settled"` // the last epoch under which all nodes had what is theirs
	Layout  string            `json:"layout"`
	Members []strategy.Member `json:"members"`           // sorted by node
	Leaving []strategy.Node   `json:"leaving,omitempty"` // alive, and handing over what they have
	Estates []strategy.Node   `json:"estates,omitempty"` // dead: what they held is handed over by others
	Changes []Change          `json:"changes,omitempty"` // since Settled, in order
	Moves   []Moves           `json:"moves,omitempty"`   // of single hosts, under the epoch after Settled
}

// Moves are single hosts that move from one member to others. The table does not name the hosts: they are in a record
// of their own, which only those read who have to know them (moves.go).
type Moves struct {
	From  strategy.Node   `json:"from"`
	Batch uint64          `json:"batch"` // the record's revision
	To    []strategy.Node `json:"to"`    // sorted
}

// A Change is one member more, or one less, from an epoch on.
type Change struct {
	Epoch  uint64          `json:"epoch"`
	Came   bool            `json:"came,omitempty"`
	Member strategy.Member `json:"member"`
}

// ParseTable reads a table as the registry has it.
func ParseTable(value []byte) (*Table, error) {
	t := new(Table)
	if err := json.Unmarshal(value, t); err != nil {
		return nil, fmt.Errorf("read the table of members: %w", err)
	}
	return t, nil
}

// Encode is the table as the registry has it.
func (t *Table) Encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // of plain fields
	}
	return b
}

func (t *Table) clone() *Table {
	c := *t
	c.Members, c.Leaving = slices.Clone(t.Members), slices.Clone(t.Leaving)
	c.Estates, c.Changes, c.Moves = slices.Clone(t.Estates), slices.Clone(t.Changes), slices.Clone(t.Moves)
	return &c
}

func (t *Table) settled() bool { return t.Settled == t.Epoch }

func find(members []strategy.Member, n strategy.Node) (int, bool) {
	return slices.BinarySearchFunc(members, n, func(m strategy.Member, n strategy.Node) int {
		return cmp.Compare(m.Node,
			n)
	})
}

func (t *Table) has(n strategy.Node) bool {
	_, ok := find(t.Members, n)
	return ok
}

// add makes a node a member, from a new epoch on.
func (t *Table) add(m strategy.Member) {
	i, _ := find(t.Members, m.Node)
	t.Members = slices.Insert(t.Members, i, m)
	t.Epoch++
	t.Changes = append(t.Changes, Change{Epoch: t.Epoch, Came: true, Member: m})
}

// remove takes members out, from a new epoch on; it does nothing with those that are none.
func (t *Table) remove(nodes ...strategy.Node) {
	t.Epoch++
	for _, n := range nodes {
		if i, ok := find(t.Members, n); ok {
			t.Changes = append(t.Changes, Change{Epoch: t.Epoch, Member: t.Members[i]})
			t.Members = slices.Delete(t.Members, i, i+1)
		}
	}
}

// settle forgets earlier epochs, and who has handed over all it had.
func (t *Table) settle() {
	t.Settled = t.Epoch
	t.Leaving, t.Estates, t.Changes, t.Moves = nil, nil, nil, nil
}

// membersAt are the members of an epoch from Settled on. They must not be changed.
func (t *Table) membersAt(epoch uint64) []strategy.Member {
	if epoch >= t.Epoch {
		return t.Members // nothing is copied: there may be 10,000
	}
	members := slices.Clone(t.Members)
	for _, c := range slices.Backward(t.Changes) {
		if c.Epoch <= epoch {
			break
		}
		i, there := find(members, c.Member.Node)
		if c.Came && there {
			members = slices.Delete(members, i, i+1)
		} else if !c.Came && !there {
			members = slices.Insert(members, i, c.Member)
		}
	}
	return members
}

// came reports whether a member was none under the last settled epoch.
func (t *Table) came(n strategy.Node) bool {
	return slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Came && c.Member.Node == n })
}

func (t *Table) leaves(n strategy.Node) bool { return slices.Contains(t.Leaving, n) }

func (t *Table) isEstate(n strategy.Node) bool { return slices.Contains(t.Estates, n) }

func (t *Table) went(n strategy.Node) bool { return t.leaves(n) || t.isEstate(n) }

// part reports whether a node is a member, or one that leaves.
func (t *Table) part(n strategy.Node) bool { return t.has(n) || t.leaves(n) }

// expects reports whether what is to's under the table's epoch may be held by from. Where members that come and go move
// no hosts but theirs, only who came since the last settled epoch can be missing something that a member has.
func (t *Table) expects(to, from strategy.Node, s shift) bool {
	if to == from || t.settled() || !t.has(to) {
		return false
	}
	if t.went(from) {
		return true
	}
	return t.has(from) && (s == shiftsAny || s == shiftsLeast && t.came(to))
}

// receivers are those who expect something from a node. Most nodes have few: then it does not matter how many members
// there are.
func (t *Table) receivers(from strategy.Node, s shift) (to []strategy.Node) {
	note := func(n strategy.Node) {
		if t.expects(n, from, s) {
			to = append(to, n)
		}
	}
	switch {
	case t.went(from) || s == shiftsAny:
	case s == shiftsNone:
		if b := t.moves(from); b != nil {
			to = slices.DeleteFunc(slices.Clone(b.To), func(n strategy.Node) bool { return n == from || !t.has(n) })
		}
		return to
	default:
		for _, c := range t.Changes {
			if c.Came {
				note(c.Member.Node)
			}
		}
		return to
	}
	for _, m := range t.Members {
		note(m.Node)
	}
	return to
}

// senders are those from whom a node expects something.
func (t *Table) senders(to strategy.Node, s shift) (from []strategy.Node) {
	note := func(n strategy.Node) {
		if t.expects(to, n, s) {
			from = append(from, n)
		}
	}
	if s == shiftsAny || s == shiftsLeast && t.came(to) {
		t.each(note)
		return from
	}
	for _, n := range slices.Concat(t.Leaving, t.Estates) {
		note(n)
	}
	if s != shiftsNone || !t.has(to) {
		return from
	}
	for _, b := range t.Moves {
		if _, moves := slices.BinarySearch(b.To, to); moves && b.From != to && t.has(b.From) {
			from = append(from, b.From)
		}
	}
	return from
}

// moves are those of a node; nil: nothing of it moves.
func (t *Table) moves(from strategy.Node) *Moves {
	i := slices.IndexFunc(t.Moves, func(b Moves) bool { return b.From == from })
	if i < 0 {
		return nil
	}
	return &t.Moves[i]
}

// takeoverNode is the member that folds the estate of a node: the one whose name's hash with the dead one's is least.
// There is none without members.
func (t *Table) takeoverNode(dead strategy.Node) strategy.Node {
	var best strategy.Node
	var least uint64
	for _, m := range t.Members {
		h := fnv.New64a()
		_, _ = h.Write([]byte(string(dead) + "\x00" + string(m.Node)))
		if v := mix(h.Sum64()); best == "" || v < least {
			best, least = m.Node, v
		}
	}
	return best
}

// mix is the finalizer of SplitMix64 (Steele, Lea, Flood 2014): without it, names that end alike have hashes that are
// alike.
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// maxGuards is how many members watch the leases of all. The others watch theirs.
const maxGuards = 3

// guards are the members that revoke leases and settle epochs. If all of them are dead, the others revoke theirs.
func (t *Table) guards() []strategy.Member { return t.Members[:min(maxGuards, len(t.Members))] }
