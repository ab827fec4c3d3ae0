package quorum

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"

	"kumo/internal/base/splitmix"
	"kumo/internal/cluster/strategy"
)

// TableKey is the registry key of the table.
const TableKey = "table"

// LeasePrefix is the prefix of the registry keys of leases.
const LeasePrefix = "lease/"

func leaseKey(n strategy.Node) string { return LeasePrefix + string(n) }

// A Table lists the nodes of a crawl. It is immutable once it has been read or written.
type Table struct {
	Epoch     uint64            `json:"epoch"`
	Finalized uint64            `json:"settled"` // last epoch that all nodes have finished
	Layout    string            `json:"layout"`
	Members   []strategy.Member `json:"members"`           // sorted by node
	Leaving   []strategy.Node   `json:"leaving,omitempty"` // alive, and transferring all their hosts
	Failed    []strategy.Node   `json:"estates,omitempty"` // dead: takeover nodes transfer their hosts
	Changes   []Change          `json:"changes,omitempty"` // since Finalized, in order
	Moves     []Moves           `json:"moves,omitempty"`   // of single hosts, under the epoch after Finalized
}

// Moves are the moves of one member's single hosts to others. The table does not name the hosts: they are in a record
// of their own, which only their owner and its takeover node read (ownmoves.go).
type Moves struct {
	From  strategy.Node   `json:"from"`
	Batch uint64          `json:"batch"` // the record's revision
	To    []strategy.Node `json:"to"`    // sorted
}

// A Change adds or removes one member, from an epoch on.
type Change struct {
	Epoch  uint64          `json:"epoch"`
	Came   bool            `json:"came,omitempty"`
	Member strategy.Member `json:"member"`
}

// ParseTable parses a registry value.
func ParseTable(value []byte) (*Table, error) {
	t := new(Table)
	if err := json.Unmarshal(value, t); err != nil {
		return nil, fmt.Errorf("read the table of members: %w", err)
	}
	return t, nil
}

// Encode returns the registry value.
func (t *Table) Encode() []byte {
	b, err := json.Marshal(t)
	if err != nil {
		panic(err) // does not fail for plain fields
	}
	return b
}

func (t *Table) clone() *Table {
	c := *t
	c.Members, c.Leaving = slices.Clone(t.Members), slices.Clone(t.Leaving)
	c.Failed, c.Changes, c.Moves = slices.Clone(t.Failed), slices.Clone(t.Changes), slices.Clone(t.Moves)
	return &c
}

func (t *Table) isFinalized() bool { return t.Finalized == t.Epoch }

func find(members []strategy.Member, n strategy.Node) (int, bool) {
	return slices.BinarySearchFunc(members, n, func(m strategy.Member, n strategy.Node) int {
		return cmp.Compare(m.Node, n)
	})
}

func (t *Table) has(n strategy.Node) bool {
	_, ok := find(t.Members, n)
	return ok
}

// remove removes those nodes that are members, from a new epoch on.
func (t *Table) remove(nodes ...strategy.Node) {
	t.Epoch++
	for _, n := range nodes {
		if i, ok := find(t.Members, n); ok {
			t.Changes = append(t.Changes, Change{Epoch: t.Epoch, Member: t.Members[i]})
			t.Members = slices.Delete(t.Members, i, i+1)
		}
	}
}

// with returns the table with a new member. It may have been leaving, if all other members have died.
func (t *Table) with(m strategy.Member) *Table {
	t = t.clone()
	t.Leaving = slices.DeleteFunc(t.Leaving, func(n strategy.Node) bool { return n == m.Node })
	i, _ := find(t.Members, m.Node)
	t.Members = slices.Insert(t.Members, i, m)
	t.Epoch++
	t.Changes = append(t.Changes, Change{Epoch: t.Epoch, Came: true, Member: m})
	return t
}

// without returns the table with a member that is leaving.
func (t *Table) without(n strategy.Node) *Table {
	t = t.clone()
	t.remove(n)
	t.Leaving = append(t.Leaving, n)
	return t
}

// removeDead returns the table without dead nodes, whose hosts takeover nodes transfer from now on.
func (t *Table) removeDead(dead []strategy.Node) *Table {
	t = t.clone()
	t.remove(dead...)
	t.Leaving = slices.DeleteFunc(t.Leaving, func(n strategy.Node) bool { return slices.Contains(dead, n) })
	t.Failed = append(t.Failed, dead...)
	return t
}

// move returns the table with batches of moves, under a new epoch.
func (t *Table) move(batches []Moves) *Table {
	t = t.clone()
	t.Epoch++
	t.Moves = batches
	return t
}

// end returns the table at the end of its epoch: without earlier epochs, and without departed nodes.
func (t *Table) end() *Table {
	c := *t
	c.Finalized, c.Leaving, c.Failed, c.Changes, c.Moves = t.Epoch, nil, nil, nil, nil
	return &c
}

// membersAt returns the members of an epoch from Finalized on. The caller must not change them.
func (t *Table) membersAt(epoch uint64) []strategy.Member {
	if epoch >= t.Epoch {
		return t.Members // without a copy: there may be 10,000 members
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

// isNew reports whether a member has joined since the last finalized epoch.
func (t *Table) isNew(n strategy.Node) bool {
	return slices.ContainsFunc(t.Changes, func(c Change) bool { return c.Came && c.Member.Node == n })
}

func (t *Table) leaves(n strategy.Node) bool { return slices.Contains(t.Leaving, n) }

func (t *Table) isFailed(n strategy.Node) bool { return slices.Contains(t.Failed, n) }

func (t *Table) departed(n strategy.Node) bool { return t.leaves(n) || t.isFailed(n) }

// participates reports whether a node is a member or a leaving one.
func (t *Table) participates(n strategy.Node) bool { return t.has(n) || t.leaves(n) }

// namesake returns another incarnation of a node that is still a member; "" if there is none. If it continues to renew
// its lease, it is another node of the same name; otherwise its lease will be revoked.
func (t *Table) namesake(self strategy.Node) strategy.Node {
	for _, o := range t.Members {
		if o.Node != self && o.Node.Name() == self.Name() {
			return o.Node
		}
	}
	return ""
}

// expects reports whether from may hold hosts that to owns under the table's epoch. If a change of members moves only
// their own hosts, only new members can lack hosts that another member holds.
func (t *Table) expects(to, from strategy.Node, s shift) bool {
	if to == from || t.isFinalized() || !t.has(to) {
		return false
	}
	if t.departed(from) {
		return true
	}
	return t.has(from) && (s == shiftsAny || s == shiftsLeast && t.isNew(to))
}

// receivers returns the nodes that expect hosts from a node. Its cost depends on their number, which is small for most
// nodes, and not on the number of members.
func (t *Table) receivers(from strategy.Node, s shift) (to []strategy.Node) {
	add := func(n strategy.Node) {
		if t.expects(n, from, s) {
			to = append(to, n)
		}
	}
	switch {
	case t.departed(from) || s == shiftsAny:
	case s == shiftsNone:
		if b := t.moves(from); b != nil {
			to = slices.DeleteFunc(slices.Clone(b.To), func(n strategy.Node) bool { return n == from || !t.has(n) })
		}
		return to
	default:
		for _, c := range t.Changes {
			if c.Came {
				add(c.Member.Node)
			}
		}
		return to
	}
	for _, m := range t.Members {
		add(m.Node)
	}
	return to
}

// senders returns the nodes from which a node expects hosts.
func (t *Table) senders(to strategy.Node, s shift) (from []strategy.Node) {
	add := func(n strategy.Node) {
		if t.expects(to, n, s) {
			from = append(from, n)
		}
	}
	if s == shiftsAny || s == shiftsLeast && t.isNew(to) {
		t.each(add)
		return from
	}
	for _, n := range slices.Concat(t.Leaving, t.Failed) {
		add(n)
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

// moves returns a node's batch; nil: it moves no single hosts.
func (t *Table) moves(from strategy.Node) *Moves {
	i := slices.IndexFunc(t.Moves, func(b Moves) bool { return b.From == from })
	if i < 0 {
		return nil
	}
	return &t.Moves[i]
}

// each calls f with all nodes that may hold hosts.
func (t *Table) each(f func(strategy.Node)) {
	for _, m := range t.Members {
		f(m.Node)
	}
	for _, n := range slices.Concat(t.Leaving, t.Failed) {
		f(n)
	}
}

// takeoverNode returns the member that recovers a dead node's state and transfers it: the one with the least hash of
// both names; "" without members.
func (t *Table) takeoverNode(dead strategy.Node) strategy.Node {
	var best strategy.Node
	var least uint64
	for _, m := range t.Members {
		if v := hashOf(string(dead) + "\x00" + string(m.Node)); best == "" || v < least {
			best, least = m.Node, v
		}
	}
	return best
}

// hashOf returns the FNV-1a hash, mixed: otherwise names with the same end have similar hashes.
func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return splitmix.Mix(h.Sum64())
}

// maxGuards bounds the members that watch all leases. The others watch the guards' leases.
const maxGuards = 3

// guards returns the members that revoke leases and end epochs. If all are dead, the others revoke their leases.
func (t *Table) guards() []strategy.Member { return t.Members[:min(maxGuards, len(t.Members))] }
