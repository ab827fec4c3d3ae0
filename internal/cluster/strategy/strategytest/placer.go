package strategytest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy"
)

func placers(t *testing.T, fresh func() strategy.Placer) {
	t.Run("views depend only on the members", func(t *testing.T) { agree(t, fresh) })
	t.Run("every host has a member as its owner", func(t *testing.T) { everyHost(t, fresh()) })
	t.Run("without members all owners are unknown", func(t *testing.T) { noMembers(t, fresh()) })
	t.Run("the list of members is not retained", func(t *testing.T) { keepsNoList(t, fresh()) })
	if fresh().Minimal() {
		t.Run("only necessary moves", func(t *testing.T) { minimal(t, fresh()) })
	}
}

// agree compares the view of a node that saw all lists with that of a new node.
func agree(t *testing.T, fresh func() strategy.Placer) {
	old := newDriver(t, fresh())
	for range steps {
		old.step()
		old.repeatMembers()
		young := fresh()
		sameView(t, old.s.View(), young.Place(slices.Clone(old.members)))
		young.Step(old.now, []strategy.Event{strategy.Members{Epoch: old.epoch, Members: slices.Clone(old.members)}}, nil)
		sameView(t, old.s.View(), young.View())
	}
}

func everyHost(t *testing.T, p strategy.Placer) {
	eachList(t, func(members []strategy.Member) {
		v := p.Place(slices.Clone(members))
		for _, h := range hosts {
			owner, state := v.Owner(h)
			if state != strategy.Owned || !has(members, owner) {
				t.Fatalf("owner of %s: %q, state %v; members %v", h, owner, state, members)
			}
		}
	})
}

func noMembers(t *testing.T, p strategy.Placer) {
	for _, v := range []strategy.View{p.View(), p.Place(nil), p.Place([]strategy.Member{})} {
		for _, h := range hosts {
			if owner, state := v.Owner(h); owner != "" || state != strategy.Unknown {
				t.Fatalf("owner of %s: %q, state %v", h, owner, state)
			}
		}
	}
}

func keepsNoList(t *testing.T, p strategy.Placer) {
	eachList(t, func(members []strategy.Member) {
		given := slices.Clone(members)
		v := p.Place(given)
		want := owners(v)
		clear(given)
		if got := owners(v); !slices.Equal(got, want) {
			t.Fatalf("the view changed with the list: %v, then %v", want, got)
		}
	})
}

// minimal compares any two lists: a host whose owner stays may only move to a joining node.
func minimal(t *testing.T, p strategy.Placer) {
	var lists [][]strategy.Member
	var placed [][]answer
	eachList(t, func(members []strategy.Member) {
		lists = append(lists, members)
		placed = append(placed, owners(p.Place(slices.Clone(members))))
	})
	for i, before := range lists {
		for j, after := range lists {
			for k, h := range hosts {
				a, b := placed[i][k].node, placed[j][k].node
				if a != b && has(after, a) && has(before, b) {
					t.Fatalf("%s moves from %s to %s: from %v to %v", h, a, b, before, after)
				}
			}
		}
	}
}

// eachList calls f with some non-empty lists of members. A node has the same slot in all of them.
func eachList(t *testing.T, f func([]strategy.Member)) {
	t.Helper()
	rng := rand.New(rand.NewPCG(2, 0))
	var members []strategy.Member
	for range steps {
		if members = change(rng, members); len(members) > 0 {
			f(members)
		}
	}
}

func has(members []strategy.Member, n strategy.Node) bool {
	return slices.ContainsFunc(members, func(m strategy.Member) bool { return m.Node == n })
}
