package quorum

import (
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestTheNextTable checks which change a node proposes first.
func TestTheNextTable(t *testing.T) {
	members := func(nodes ...strategy.Node) (all []strategy.Member) {
		for _, n := range nodes {
			all = append(all, strategy.Member{Node: n, Slot: -1})
		}
		return all
	}
	table := func(epoch, settled uint64, nodes ...strategy.Node) *Table {
		return &Table{Epoch: epoch, Finalized: settled, Members: members(nodes...)}
	}
	busy, settled := table(3, 2, "a~1", "b~1"), table(3, 3, "a~1", "b~1")
	three := table(4, 3, "a~1", "b~1", "c~1")
	leaver, dead, left, moved := table(4, 3), table(4, 2, "a~1"), table(4, 3, "b~1"), table(4, 3, "a~1", "b~1")
	leaver.Leaving, left.Leaving = []strategy.Node{"a~1"}, []strategy.Node{"a~1"}
	dead.Failed, moved.Moves = []strategy.Node{"b~1"}, []Moves{{From: "b~1", Batch: 7}}
	for name, c := range map[string]struct {
		self                    strategy.Node
		ph                      phase
		table                   *Table
		dead                    []strategy.Node
		allDone, leaving, moves bool
		want                    *Table // nil: none
		full                    bool
	}{
		"the first node":             {"a~1", joining, nil, nil, false, false, false, table(1, 1, "a~1"), false},
		"it joins":                   {"c~1", joining, settled, nil, false, false, false, three, false},
		"it joins a full cluster":    {"d~1", joining, settled, nil, false, false, false, nil, true},
		"its namesake is a member":   {"b~2", joining, settled, nil, false, false, false, nil, false},
		"it joins in an epoch":       {"c~1", joining, busy, nil, false, false, false, nil, false},
		"a node is dead":             {"a~1", active, busy, []strategy.Node{"b~1"}, true, true, true, dead, false},
		"the epoch is complete":      {"a~1", active, busy, nil, true, true, true, table(3, 3, "a~1", "b~1"), false},
		"the epoch is not complete":  {"a~1", active, busy, nil, false, true, true, nil, false},
		"it leaves":                  {"a~1", active, settled, nil, true, true, false, left, false},
		"hosts move before it does":  {"a~1", active, settled, nil, true, true, true, moved, false},
		"all others died, it leaves": {"a~1", active, leaver, nil, false, true, false, table(5, 3, "a~1"), false},
		"there is nothing to do":     {"a~1", active, settled, nil, true, false, false, nil, false},
	} {
		p := &proposals{env: &env{self: c.self, timing: member.LAN(), table: c.table}, leaving: c.leaving, revision: 9,
			rank: func() time.Duration { return time.Second }, dead: func() []strategy.Node { return c.dead },
			allDone: func() bool { return c.allDone }, movesIdle: func() bool { return !c.moves },
			batches: func() []Moves {
				if c.moves {
					return moved.Moves
				}
				return nil
			}}
		if c.full {
			p.slot = func([]strategy.Member, strategy.Node) int { return -1 }
		}
		err := p.propose(c.ph)
		w := actions[member.Write](p.env)
		if (err != nil) != c.full || len(w) > 0 != (c.want != nil) {
			t.Errorf("%s: %+v, %v", name, w, err)
			continue
		}
		if c.want == nil {
			continue
		}
		got, err := ParseTable(w[0].Value)
		if err != nil || w[0].Revision != 9 {
			t.Fatalf("%s: revision %d, %v", name, w[0].Revision, err)
		}
		got.Changes = nil
		if string(got.Encode()) != string(c.want.Encode()) {
			t.Errorf("%s: %s, not %s", name, got.Encode(), c.want.Encode())
		}
		if again := p.propose(c.ph); again != nil || len(p.env.actions) > 0 {
			t.Errorf("%s: two proposals are under way", name)
		}
		p.wrote(member.ErrStale, c.ph == joining)
		if at := p.due(); !at.After(p.env.now) || p.propose(c.ph) != nil || len(p.env.actions) > 0 {
			t.Errorf("%s: after a conflict the next proposal is due at %v", name, at)
		}
	}
}
