package quorum

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestMoves is TestMembers for strategies that are no Placers: who stays keeps what it holds, single hosts move where
// they are told to, and what the dead and those who leave have held goes to somebody. At rest each host is held by just
// one.
func TestMoves(t *testing.T) {
	moved := 0
	for seed := range seeds() {
		w := newWorld(t, seed)
		w.lossy, w.keeps = seed%3 == 0, true
		all := hosts(40)
		w.add(node(0), false)
		w.run(10 * time.Second)
		for _, h := range all {
			w.shared[node(0)][h] = true
		}
		next := 1
		for range 16 {
			n := w.nodes[node(w.rng.IntN(next))]
			if !w.upset(n, &next, w.rng.IntN(14)) && !n.dead {
				w.move(n, next)
			}
			w.run(time.Duration(w.rng.IntN(40)) * time.Second / 4)
		}
		var err error
		for range 20 {
			w.revive(node(next))
			w.run(30 * time.Second)
			if err = w.checkKept(all); err == nil {
				break
			}
		}
		if err != nil {
			t.Log(strings.Join(w.story, "\n"))
			t.Fatalf("seed %d: %v", seed, err)
		}
		moved += w.moved
	}
	if t.Logf("%d hosts were to move", moved); moved == 0 {
		t.Error("nothing ever moved")
	}
}

// move wants some of what a node holds to go to one that may be a member, or none any more.
func (w *world) move(n *testNode, nodes int) {
	var some []string
	for _, h := range slices.Sorted(maps.Keys(w.shared[n.id])) {
		if w.rng.IntN(3) == 0 {
			some = append(some, h)
		}
	}
	to := node(w.rng.IntN(nodes))
	w.tell("%s is to hand over %v to %s", n.id, some, to)
	n.inbox = append(n.inbox, member.HandOver{Hosts: some, To: to})
	w.moved += len(some)
}

// checkKept says what is wrong at rest: a host that nobody holds, or more than one.
func (w *world) checkKept(hosts []string) error {
	var all []error
	table, err := ParseTable(w.keys[TableKey].Value)
	if err != nil || !table.settled() {
		return fmt.Errorf("the table is %+v: %w", table, err)
	}
	for _, h := range hosts {
		var by []string
		for _, m := range table.Members {
			if w.shared[m.Node][h] {
				by = append(by, string(m.Node))
			}
		}
		if len(by) != 1 {
			all = append(all, fmt.Errorf("%s is held by %v", h, by))
		}
	}
	for _, id := range sortedNodes(w.nodes) {
		if n := w.nodes[id]; !n.dead && !n.m.movesNothing() {
			all = append(all, fmt.Errorf("%s has yet to hand over %v", id, n.m.moving))
		}
	}
	return errors.Join(all...)
}

// A host may come to a node that hands it over: what came under the epoch under which the node did, or later, is not
// forgotten with what went.
func TestForgetSparesWhatCameMeanwhile(t *testing.T) {
	m := New(Config{Self: "b~1", Timing: member.LAN()})
	m.table = &Table{Epoch: 5, Settled: 2, Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}, {Node: "c~1"}},
		Moves: []Moves{{From: "b~1", Batch: 7, To: []strategy.Node{"c~1"}}}}
	m.records["b~1"] = record{7, map[string]strategy.Node{"goes": "c~1"}}
	for e := uint64(2); e <= 5; e++ {
		m.places[e] = m.place(e)
	}
	e := &export{from: "b~1", epoch: 5, moved: true, flows: map[strategy.Node]*flow{"c~1": {whole: true}}}
	of := func(epochs ...uint64) (all []member.Transfer) {
		for _, e := range epochs {
			all = append(all, member.Transfer{From: "b~1", To: "c~1", Epoch: e})
		}
		return all
	}
	for name, c := range map[string]struct {
		gone  member.Gone
		under uint64 // the last epoch under which it went
	}{
		"at the end":             {m.forget(e).Gone, 5},
		"of an earlier one":      {m.oneOf(of(3)), 3},
		"of two earlier ones":    {m.oneOf(of(4, 3)), 4},
		"of one that is settled": {m.oneOf(of(2)), 0},
	} {
		for came := uint64(0); came <= 6; came++ {
			if got := c.gone("goes", came); got != (came < c.under) {
				t.Errorf("%s: a host that came under %d is to be forgotten: %v", name, came, got)
			}
			if c.gone("stays", came) {
				t.Errorf("%s: a host that stays is to be forgotten", name)
			}
		}
	}
}

// Of a host that has begun to move, more may come to be held: then it is to move again.
func TestAHostMayMoveTwice(t *testing.T) {
	m := New(Config{Self: "b~1", Timing: member.LAN()})
	wish := func() bool {
		m.handOver(member.HandOver{Hosts: []string{"h"}, To: "c~1"})
		return m.moving.wants["h"] == "c~1"
	}
	m.table = &Table{Epoch: 2, Settled: 2}
	m.records["b~1"] = record{7, map[string]strategy.Node{"h": "c~1"}}
	m.moving.offer = Proposal{Batch: 7, To: []strategy.Node{"c~1"}}
	if wish() {
		t.Error("it is wanted twice in batches that wait")
	}
	m.table = &Table{Epoch: 3, Settled: 2, Moves: []Moves{{From: "b~1", Batch: 7, To: []strategy.Node{"c~1"}}}}
	m.movesTaken()
	if !wish() {
		t.Error("it is not wanted again while it moves")
	}
}
