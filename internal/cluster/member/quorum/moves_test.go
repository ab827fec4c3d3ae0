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
)

// TestMoves is TestMembers for strategies that are no Placers: remaining members keep their hosts, single hosts move as
// requested, and the hosts of dead and leaving nodes move to others. At rest each host is held by exactly one node.
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

// move requests to move some hosts of a node to another node, which may or may not be a member.
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

// checkKept returns an error at rest if a host is held by no node, or by several.
func (w *world) checkKept(hosts []string) error {
	var all []error
	table, err := ParseTable(w.keys[TableKey].Value)
	if err != nil || !table.isFinalized() {
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
		if n := w.nodes[id]; !n.dead && !n.m.moves.idle() {
			all = append(all, fmt.Errorf("%s has yet to hand over %v", id, n.m.moves.requested))
		}
	}
	return errors.Join(all...)
}
