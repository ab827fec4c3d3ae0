package quorum

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// TestManyMoveUnderOneEpoch has each of some nodes want hosts moved to each other one, all at once: it takes one epoch
// or two, not one a node.
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
	m.handOver(member.HandOver{Hosts: all, To: "b~1"})
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
		m.handOver(member.HandOver{Hosts: []string{fmt.Sprintf("h%d.example", i)}, To: node(i)})
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

// TestChunksThatComeEarlyAreKept has the chunks of a transfer come in the wrong order: the holder is given them in the
// right one, and none is asked for again.
func TestChunksThatComeEarlyAreKept(t *testing.T) {
	m := New(Config{Self: "b~1", Timing: member.LAN()})
	m.phase, m.owed = in, map[strategy.Node]bool{"a~1": true}
	m.table = &Table{Epoch: 2, Settled: 1, Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}
	tr := member.Transfer{From: "a~1", To: "b~1", Epoch: 2, Attempt: 1}
	var took []uint64
	for _, seq := range []uint64{3, 1, 1, 0, 99, 2, 4} {
		m.out = nil
		m.message(member.Message{From: "a~1", Data: chunkMsg{t: tr, seq: seq, data: []byte{byte(seq)}}.encode()})
		for _, a := range m.out {
			if take, is := a.(member.Take); is {
				took = append(took, take.Seq)
				if len(take.Data) != 1 || uint64(take.Data[0]) != take.Seq {
					t.Errorf("chunk %d has %v", take.Seq, take.Data)
				}
			}
		}
	}
	if want := []uint64{0, 1, 2, 3, 4}; !slices.Equal(took, want) || m.early != 1 {
		t.Errorf("the holder was given %v, not %v, and %d bytes are kept", took, want, m.early)
	}
	for seq := range uint64(100) {
		m.message(member.Message{From: "a~1", Data: chunkMsg{t: tr, seq: 100 + seq, data: make([]byte, 1<<20)}.encode()})
	}
	if a := m.coming["a~1"]; len(a.early) > member.LAN().Window || m.early > maxEarly {
		t.Errorf("%d chunks are kept, %d bytes", len(a.early), m.early)
	}
	if m.outdate(); m.early != 0 {
		t.Errorf("%d bytes are kept of transfers that are no more", m.early)
	}
}

// TestDrainIsOfWhatMoves: of a member that keeps its hosts only those are waited for that move.
func TestDrainIsOfWhatMoves(t *testing.T) {
	m := New(Config{Self: "a~1", Timing: member.LAN()})
	m.table = &Table{Epoch: 2, Settled: 1, Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}},
		Moves: []Moves{{From: "a~1", Batch: 7, To: []strategy.Node{"b~1"}}}}
	m.places[2] = m.place(2)
	if m.drains() != nil {
		t.Error("which hosts move is not known, and yet some are left out")
	}
	m.records["a~1"] = record{7, map[string]strategy.Node{"h": "b~1", "gone": "c~1"}}
	if of := m.drains(); of == nil || !of("h") || of("gone") || of("other") {
		t.Error("what moves is waited for, what stays because nobody is there to have it is not, nor is anything else")
	}
}

// TestABatchOutlivesItsProcess ends a process just when its lease names a batch, or when an epoch has taken it; it
// comes back, with more to be moved, or does not. Whatever comes of it, what the batch says is done.
func TestABatchOutlivesItsProcess(t *testing.T) {
	for name, c := range map[string]struct {
		now   func(w *world, table *Table, lease Lease) bool // it ends
		again bool
	}{
		"named":                    {func(_ *world, t *Table, l Lease) bool { return l.waits() && t.settled() }, true},
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
			first := fmt.Sprintf("h%d.example", seed) // its heir would be another, mostly
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
			if err != nil || !killed || !table.settled() {
				t.Fatalf("%s, seed %d: killed %v, %+v, %v", name, seed, killed, table, err)
			}
			if !w.shared[node(to)][first] || w.shared[node(from)][first] && c.again || c.again && !w.shared[node(to)]["second"] {
				t.Fatalf("%s, seed %d: %v", name, seed, w.shared)
			}
		}
	}
}
