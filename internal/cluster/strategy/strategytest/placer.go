package strategytest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy"
)

func placers(t *testing.T, fresh func() strategy.Placer) {
	t.Run("all nodes agree, whatever came before", func(t *testing.T) { agree(t, fresh) })
	t.Run("every host has an owner who is there", func(t *testing.T) { everyHost(t, fresh()) })
	t.Run("without members nothing is known", func(t *testing.T) { noMembers(t, fresh()) })
	t.Run("a list of members is not kept", func(t *testing.T) { keepsNoList(t, fresh()) })
	if fresh().Minimal() {
		t.Run("no host moves that need not", func(t *testing.T) { minimal(t, fresh()) })
	}
}

// agree compares the view of a node that was there all along with that of one that has just begun.
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
				t.Fatalf("%s is %q's, state %v, of %v", h, owner, state, members)
			}
		}
	})
}

func noMembers(t *testing.T, p strategy.Placer) {
	for _, v := range []strategy.View{p.View(), p.Place(nil), p.Place([]strategy.Member{})} {
		for _, h := range hosts {
			if owner, state := v.Owner(h); owner != "" || state != strategy.Unknown {
				t.Fatalf("%s is %q's, state %v", h, owner, state)
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
			t.Fatalf("the list was used again, and the view said %v, then %v", want, got)
		}
	})
}

// minimal compares any two lists: a host of a node that stays may only go to one that comes.
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

// eachList calls f with some lists of members that are not empty. A node has the same slot in all.
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
