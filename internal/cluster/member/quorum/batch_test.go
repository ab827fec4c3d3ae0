package quorum

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestManyMoveUnderOneEpoch has several nodes request to move hosts to each of the others at once: it takes one epoch
// or two, not one for each node.
func TestManyMoveUnderOneEpoch(t *testing.T) {
	const nodes = 12
	w := newWorld(t, 1)
	w.keeps = true
	for i := range nodes {
		w.add(node(i), false)
		w.run(5 * time.Second)
	}
	w.run(30 * time.Second)
	table := func() *Table {
		all, err := ParseTable(w.keys[TableKey].Value)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := table()
	if !before.isFinalized() || len(before.Members) != nodes {
		t.Fatalf("the cluster is not formed: %+v", before)
	}
	want := map[string]strategy.Node{}
	for i := range nodes {
		for j := range nodes {
			h := fmt.Sprintf("h%d-%d.example", i, j)
			w.shared[node(i)][h] = true
			want[h] = node(j)
			if i != j {
				n := w.nodes[node(i)]
				n.inbox = append(n.inbox, member.HandOver{Hosts: []string{h}, To: node(j)})
			}
		}
	}
	w.run(10 * time.Second)
	for h, to := range want {
		for i := range nodes {
			if w.shared[node(i)][h] != (node(i) == to) {
				t.Errorf("%s is to go to %s; %s has it: %v", h, to, node(i), w.shared[node(i)][h])
			}
		}
	}
	if after := table(); !after.isFinalized() || after.Epoch > before.Epoch+2 {
		t.Errorf("it has taken %d epochs, and all is settled: %v", after.Epoch-before.Epoch, after.isFinalized())
	}
	back := "h0-1.example" // moves back; then another node starts an epoch that moves nothing
	delete(w.shared[node(1)], back)
	w.shared[node(0)][back] = true
	w.add(node(nodes), false)
	w.run(30 * time.Second)
	if !w.shared[node(0)][back] {
		t.Errorf("%s has moved again, under an epoch that moves nothing", back)
	}
	for _, key := range slices.Sorted(maps.Keys(w.keys)) {
		if w.keys[key].Value != nil && len(key) > len(MovesPrefix) && key[:len(MovesPrefix)] == MovesPrefix {
			t.Errorf("%s stays in the registry", key)
		}
	}
}

// TestABatchOutlivesItsProcess ends a process just when its lease names a batch, or when an epoch has taken it. The
// node comes back, with more requests, or does not. In any case the batch is executed.
func TestABatchOutlivesItsProcess(t *testing.T) {
	for name, c := range map[string]struct {
		now   func(w *world, table *Table, lease Lease) bool // the process ends
		again bool
	}{
		"named":                    {func(_ *world, t *Table, l Lease) bool { return l.waits() && t.isFinalized() }, true},
		"taken":                    {func(_ *world, t *Table, _ Lease) bool { return len(t.Moves) > 0 }, true},
		"taken, and it stays away": {func(_ *world, t *Table, _ Lease) bool { return len(t.Moves) > 0 }, false},
	} {
		for seed := range uint64(40) {
			w := newWorld(t, seed)
			w.keeps = true
			for i := range 5 {
				w.add(node(i), false)
				w.run(5 * time.Second)
			}
			w.run(20 * time.Second)
			const from, to = 3, 4
			first := fmt.Sprintf("h%d.example", seed) // otherwise its takeover node would usually be another one
			w.shared[node(from)][first], w.shared[node(from)]["second"] = true, true
			n := w.nodes[node(from)]
			n.inbox = append(n.inbox, member.HandOver{Hosts: []string{first}, To: node(to)})
			killed := false
			w.wrote = func() {
				table, err := ParseTable(w.keys[TableKey].Value)
				lease, unread := ParseLease(w.keys[leaseKey(node(from))].Value)
				if !killed && err == nil && unread == nil && c.now(w, table, lease) {
					killed = true
					n.kill()
				}
			}
			for range 50 {
				if w.run(100 * time.Millisecond); killed && c.again && n.dead {
					n = w.add(node(from), true)
					n.inbox = append(n.inbox, member.HandOver{Hosts: []string{"second"}, To: node(to)})
				}
			}
			w.run(time.Minute)
			table, err := ParseTable(w.keys[TableKey].Value)
			if err != nil || !killed || !table.isFinalized() {
				t.Fatalf("%s, seed %d: killed %v, %+v, %v", name, seed, killed, table, err)
			}
			if !w.shared[node(to)][first] || w.shared[node(from)][first] && c.again || c.again && !w.shared[node(to)]["second"] {
				t.Fatalf("%s, seed %d: %v", name, seed, w.shared)
			}
		}
	}
}
