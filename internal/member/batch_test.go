package member

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"kumo/internal/strategy"
)

// TestManyMoveUnderOneEpoch has each of some nodes want hosts moved to each other one, all at once: it takes one epoch or two, not one a node.
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
	if !before.settled() || len(before.Members) != nodes {
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
				n.inbox = append(n.inbox, HandOver{Hosts: []string{h}, To: node(j)})
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
	if after := table(); !after.settled() || after.Epoch > before.Epoch+2 {
		t.Errorf("it has taken %d epochs, and all is settled: %v", after.Epoch-before.Epoch, after.settled())
	}
	back := "h0-1.example" // comes back; then another node makes an epoch that moves nothing
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

// TestABatchIsBounded wants more moved than a batch may have, and gets it in the order in which it came.
func TestABatchIsBounded(t *testing.T) {
	m := New(Config{Self: "a~1"})
	var all []string
	for i := range 3*maxMoves + 5 {
		all = append(all, fmt.Sprintf("h%d.example", (i*7919)%(1<<20)))
	}
	m.handOver(HandOver{Hosts: all, To: "b~1"})
	for len(m.moving.wants) > 0 {
		batch := m.choose()
		for h := range batch {
			if !slices.Contains(all[:len(batch)], h) {
				t.Fatalf("%s came later than others", h)
			}
		}
		if all = all[len(batch):]; len(batch) > maxMoves || len(encodeMoves(batch)) > maxMoveBytes+1<<10 || len(batch) == 0 {
			t.Fatalf("a batch has %d moves", len(batch))
		}
	}
	for i := range maxTargets + 1 {
		m.handOver(HandOver{Hosts: []string{fmt.Sprintf("h%d.example", i)}, To: node(i)})
	}
	if batch := m.choose(); len(batch) != maxTargets || len(m.moving.wants) != 1 {
		t.Errorf("a batch goes to %d nodes, and %d wait", len(batch), len(m.moving.wants))
	}
}

// TestAnEpochTakesTheOldestFirst has more wait than an epoch takes, and among it what does not wait any more.
func TestAnEpochTakesTheOldestFirst(t *testing.T) {
	m := New(Config{Self: "a~1"})
	m.table = &Table{Epoch: 7, Settled: 7}
	var to []strategy.Node
	for i := range maxPairs / 2 {
		to = append(to, node(i))
	}
	for i := range 5 {
		n := node(i)
		m.table.Members = append(m.table.Members, strategy.Member{Node: n})
		m.peers[n] = &peer{lease: Lease{Done: 7, Proposal: Proposal{Batch: uint64(10 - i), To: to}}}
		m.offered(n, &m.peers[n].lease.Proposal)
	}
	m.peers[node(4)].lease.Done = 6 // the oldest: it may be one that the last epoch has taken
	m.peers[node(5)] = &peer{lease: Lease{Done: 7, Proposal: Proposal{Batch: 1, To: to}}}
	m.offered(node(5), &m.peers[node(5)].lease.Proposal) // no member
	var got []strategy.Node
	next := m.withMoves()
	for _, b := range next.Moves {
		got = append(got, b.From)
	}
	if want := []strategy.Node{node(3), node(2)}; !slices.Equal(got, want) || next.Epoch != 8 {
		t.Errorf("epoch %d takes the batches of %v, not %v", next.Epoch, got, want)
	}
}

func TestRecordsOfMoves(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	moves := map[string]strategy.Node{}
	for i := range 1000 {
		moves[fmt.Sprintf("h%d.example", i)] = node(rng.IntN(9))
	}
	value := encodeMoves(moves)
	if got, err := parseMoves(value); err != nil || !reflect.DeepEqual(got, moves) {
		t.Errorf("%d moves came back as %d, %v", len(moves), len(got), err)
	}
	if _, err := parseMoves(value[:len(value)-1]); err == nil {
		t.Error("a part of a record is taken for a whole one")
	}
}

// FuzzMoves reads records that nobody has written.
func FuzzMoves(f *testing.F) {
	f.Add(encodeMoves(map[string]strategy.Node{"a.example": "a~1", "b.example": "b~1"}))
	f.Fuzz(func(t *testing.T, data []byte) {
		moves, err := parseMoves(data)
		if err != nil {
			return
		}
		if again, err := parseMoves(encodeMoves(moves)); err != nil || !reflect.DeepEqual(moves, again) {
			t.Errorf("%v came back as %v, %v", moves, again, err)
		}
	})
}
