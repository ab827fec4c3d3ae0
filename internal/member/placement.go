package member

import (
	"hash/fnv"
	"slices"

	"kumo/internal/strategy"
)

// A placement says, under one epoch, to whom goes what a node holds of a host; "" where it stays.
type placement interface {
	to(from strategy.Node, host string) strategy.Node
}

// placed is the placement of a Placer: hosts go to their owners.
type placed struct{ view strategy.View }

func (p placed) to(from strategy.Node, host string) strategy.Node {
	if owner, state := p.view.Owner(host); state == strategy.Owned && owner != from {
		return owner
	}
	return ""
}

// kept is the placement under strategies that are no Placers: members keep what they hold, but for single hosts that move; what others
// held goes to heirs, spread over all members.
type kept struct {
	members []strategy.Member
	moves   map[string]strategy.Move // with those to whom they go in the end
}

func keeping(t *Table, epoch uint64) kept {
	k := kept{members: t.membersAt(epoch)}
	for _, m := range t.Moves {
		if m.Epoch > epoch {
			continue
		}
		if k.moves == nil {
			k.moves = make(map[string]strategy.Move, len(t.Moves))
		}
		k.moves[m.Host] = strategy.Move{Host: m.Host, From: m.From, To: target(k.members, m.Move)}
	}
	return k
}

func (k kept) to(from strategy.Node, host string) strategy.Node {
	_, stays := find(k.members, from)
	to := strategy.Node("")
	if m, moves := k.moves[host]; moves && (m.From == from || !stays) {
		to = m.To
	} else if !stays {
		to = heir(k.members, host)
	}
	if to == from {
		return ""
	}
	return to
}

// target is to whom a host moves: who was to have it may have died.
func target(members []strategy.Member, m strategy.Move) strategy.Node {
	if _, there := find(members, m.To); there {
		return m.To
	}
	return heir(members, m.Host)
}

// heir is the member that gets a host of one who went; "" without members. All that matters is that everybody computes the same.
func heir(members []strategy.Member, host string) strategy.Node {
	if len(members) == 0 {
		return ""
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(host))
	return members[mix(h.Sum64())%uint64(len(members))].Node
}

// A shift says which hosts a new list of members moves.
type shift uint8

const (
	shiftsAny   shift = iota // from anybody to anybody
	shiftsLeast              // to those that came, and from those that went
	shiftsNone               // from those that went, and single ones
)

func (c *Config) shift() shift {
	switch {
	case c.Place == nil:
		return shiftsNone
	case c.Place.Minimal():
		return shiftsLeast
	}
	return shiftsAny
}

// place is how hosts are placed under an epoch.
func (m *Member) place(epoch uint64) placement {
	if m.cfg.Place == nil {
		return keeping(m.table, epoch)
	}
	return placed{m.cfg.Place.Place(m.table.membersAt(epoch))}
}

// moveTargets are those to whom single hosts move from a member.
func (t *Table) moveTargets(from strategy.Node) (to []strategy.Node) {
	for _, m := range t.Moves {
		if m.From == from {
			if n := target(t.Members, m.Move); n != from && !slices.Contains(to, n) {
				to = append(to, n)
			}
		}
	}
	return to
}

// moveSources are the members from which single hosts move to one.
func (t *Table) moveSources(to strategy.Node) (from []strategy.Node) {
	for _, m := range t.Moves {
		if m.From != to && t.has(m.From) && target(t.Members, m.Move) == to && !slices.Contains(from, m.From) {
			from = append(from, m.From)
		}
	}
	return from
}

// most of what one epoch moves.
const (
	maxMoves     = 10_000
	maxMoveBytes = 1 << 20
)

// handOver notes that hosts are to move to another node.
func (m *Member) handOver(e HandOver) {
	if m.moves == nil {
		m.moves = map[string]strategy.Node{}
	}
	for _, h := range e.Hosts {
		m.moves[h] = e.To
	}
}

// moved forgets what the table has of the moves that were wanted, and those to nodes that are none any more.
func (m *Member) moved() {
	if len(m.moves) == 0 {
		return
	}
	for _, v := range m.table.Moves {
		if v.From == m.cfg.Self && m.moves[v.Host] == v.To {
			delete(m.moves, v.Host)
		}
	}
	for h, to := range m.moves {
		if !m.table.has(to) {
			delete(m.moves, h)
		}
	}
}

// withMoves is the table with the moves that this node wants, under a new epoch.
func (m *Member) withMoves() *Table {
	t := m.table.clone()
	t.Epoch++
	hosts := make([]string, 0, len(m.moves))
	for h := range m.moves {
		hosts = append(hosts, h)
	}
	slices.Sort(hosts)
	size := 0
	for _, h := range hosts[:min(len(hosts), maxMoves)] {
		if size += len(h) + 100; size > maxMoveBytes {
			break
		}
		t.Moves = append(t.Moves, MoveAt{Epoch: t.Epoch, Move: strategy.Move{Host: h, From: m.cfg.Self, To: m.moves[h]}})
	}
	return t
}
