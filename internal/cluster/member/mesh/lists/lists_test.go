package lists

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/base/xor"
)

// A network is nodes with their histories, and all records.
type network struct {
	t       *testing.T
	rng     *rand.Rand
	bits    int
	near    xor.ID // most ids share bits with it, so that some buckets are full and others empty
	full    int    // known nodes of a bucket; 0: all
	nodes   map[xor.ID]*History
	records []xor.ID

	joins, leaves Counts
	moved         int
}

func (w *network) id() (id xor.ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], w.rng.Uint64())
	}
	if w.rng.IntN(4) > 0 {
		keep := w.rng.IntN(w.bits)
		for i := range keep {
			if index := xor.Bits - 1 - i; id.Bit(index) != w.near.Bit(index) {
				id = flip(id, index)
			}
		}
	}
	return id.Truncate(w.bits)
}

func (w *network) closest(id xor.ID) (best xor.ID) {
	first := true
	for n := range w.nodes {
		if first || xor.Compare(n, best, id) < 0 {
			best, first = n, false
		}
	}
	return best
}

// others returns all nodes except one, in a fixed order.
func (w *network) others(self xor.ID) (all []xor.ID) {
	for n := range w.nodes {
		if n != self {
			all = append(all, n)
		}
	}
	slices.SortFunc(all, func(a, b xor.ID) int { return slices.Compare(a[:], b[:]) })
	return all
}

// contacts returns what a node knows: all nodes, or w.full of each bucket.
func (w *network) contacts(self xor.ID) Contacts {
	c := Contacts{Nodes: w.others(self)}
	if w.full == 0 {
		return c
	}
	w.rng.Shuffle(len(c.Nodes), func(i, j int) { c.Nodes[i], c.Nodes[j] = c.Nodes[j], c.Nodes[i] })
	count := map[int]int{}
	c.Nodes = slices.DeleteFunc(c.Nodes, func(n xor.ID) bool {
		count[self.FirstDiff(n)]++
		return count[self.FirstDiff(n)] > w.full
	})
	c.Full = func(bucket int) bool { return count[bucket] >= w.full }
	c.Find = w.closest
	return c
}

func (w *network) join() {
	id := w.id()
	if w.nodes[id] != nil {
		return
	}
	nearest := xor.Bits
	for n := range w.nodes {
		nearest = min(nearest, id.FirstDiff(n))
	}
	h := New(id)
	for _, n := range w.others(id) {
		if id.FirstDiff(n) == nearest {
			ids, c := w.nodes[n].Join(id)
			for _, r := range ids {
				h.Add(r)
			}
			w.joins = w.joins.plus(c)
			w.moved += len(ids)
		}
	}
	w.nodes[id] = h
}

func (w *network) leave() {
	if len(w.nodes) < 2 {
		return
	}
	all := w.others(xor.ID{1, 2, 3})
	id := all[w.rng.IntN(len(all))]
	h := w.nodes[id]
	delete(w.nodes, id)
	w.nodes[id] = h
	c := w.contacts(id)
	delete(w.nodes, id)
	moves, n := h.Leave(c)
	for _, m := range moves {
		for _, r := range m.IDs {
			w.nodes[m.To].Add(r)
		}
		w.moved += len(m.IDs)
	}
	if h.Len() > 0 {
		w.t.Errorf("%v has left with %d records", id, h.Len())
	}
	w.leaves = w.leaves.plus(n)
}

func (a Counts) plus(b Counts) Counts {
	return Counts{a.Whole + b.Whole, a.Compared + b.Compared, a.LookedUp + b.LookedUp, a.Kept + b.Kept}
}

// check checks that each record is at the closest node, and nowhere else.
func (w *network) check(what string) {
	for _, r := range w.records {
		if n := w.closest(r); !w.nodes[n].Has(r) {
			w.t.Fatalf("after a node %s, the closest node %x does not have the record %x", what, n[:2], r[:2])
		}
	}
	total := 0
	for _, h := range w.nodes {
		total += h.Len()
	}
	if total != len(w.records) {
		w.t.Fatalf("after a node %s, there are %d records of %d", what, total, len(w.records))
	}
}

func newNetwork(t *testing.T, seed uint64, bits, nodes, records int) *network {
	w := &network{t: t, rng: rand.New(rand.NewPCG(seed, uint64(bits))), bits: bits, nodes: map[xor.ID]*History{}}
	w.near = w.id()
	for len(w.nodes) < nodes {
		id := w.id()
		w.nodes[id] = New(id)
	}
	met := map[xor.ID]bool{}
	for range records {
		if id := w.id(); !met[id] {
			met[id] = true
			w.records = append(w.records, id)
			w.nodes[w.closest(id)].Add(id)
		}
	}
	return w
}

// After any sequence of joins and leaves, each record is at the live node closest to it, and no record is lost.
func TestRecordsAreAtTheClosestNode(t *testing.T) {
	for _, bits := range []int{8, 12, 16, 160} {
		for _, full := range []int{0, 3} {
			t.Run(fmt.Sprintf("%d bits, %d contacts a bucket", bits, full), func(t *testing.T) {
				var joins, leaves Counts
				for seed := range uint64(60) {
					w := newNetwork(t, seed, bits, 1+int(seed%32), 100)
					w.full = full
					for range 20 {
						if w.rng.IntN(2) == 0 {
							w.join()
							w.check("has joined")
						} else {
							w.leave()
							w.check("has left")
						}
						if t.Failed() {
							t.Fatalf("seed %d", seed)
						}
					}
					joins, leaves = joins.plus(w.joins), leaves.plus(w.leaves)
				}
				t.Logf("joins: %+v; leaves: %+v", joins, leaves)
				if joins.Whole == 0 || leaves.Whole == 0 || (leaves.LookedUp > 0) != (full > 0) {
					t.Error("some ways to move records do not occur")
				}
			})
		}
	}
}

// How many records are compared and moved whole, with ids that are distributed evenly.
func TestMostRecordsAreNotCompared(t *testing.T) {
	w := newNetwork(t, 1, 1, 0, 0)
	w.bits, w.near = 160, xor.ID{}
	even := func() (id xor.ID) {
		for i := 0; i < 20; i += 4 {
			binary.BigEndian.PutUint32(id[i:], w.rng.Uint32())
		}
		return id
	}
	for range 200 {
		id := even()
		w.nodes[id] = New(id)
	}
	for range 20_000 {
		id := even()
		w.records = append(w.records, id)
		w.nodes[w.closest(id)].Add(id)
	}
	for range 60 {
		w.leave()
	}
	w.check("has left")
	leaves := w.leaves
	for range 60 {
		w.join()
	}
	w.check("has joined")
	t.Logf("leaves: %+v; joins: %+v; moved: %d", leaves, w.joins, w.moved)
	if leaves.Whole < leaves.Compared {
		t.Error("most records of a node that leaves are compared")
	}
}

// Closest agrees with a comparison of all nodes for each id.
func TestClosestIsThatOfEachID(t *testing.T) {
	const bits = 8
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var nodes []xor.ID
		for _, b := range rng.Perm(1 << bits)[:1+rng.IntN(12)] {
			nodes = append(nodes, xor.ID{byte(b)})
		}
		self, k := xor.ID{byte(rng.IntN(1 << bits))}, 1+rng.IntN(4)
		for list := xor.Bits - bits; list < xor.Bits; list++ {
			r := Of(self, list)
			all, some, rest := Closest(nodes, r, k)
			for b := range 1 << bits {
				id := xor.ID{byte(b)}
				if (self.FirstDiff(id) == list) != r.Contains(id) {
					t.Fatalf("seed %d: list %d of %v contains %v: %v", seed, list, self, id, r.Contains(id))
				}
				if !r.Contains(id) {
					continue
				}
				byDistance := func(a, b int) int { return xor.Compare(nodes[a], nodes[b], id) }
				got := slices.Clone(some)
				slices.SortFunc(got, byDistance)
				got = append(got[:min(rest, len(got))], all...)
				slices.SortFunc(got, byDistance)
				want := make([]int, len(nodes))
				for i := range want {
					want[i] = i
				}
				slices.SortFunc(want, byDistance)
				if want = want[:min(k, len(want))]; !slices.Equal(got, want) {
					t.Fatalf("seed %d: the %d closest nodes to %v are %v, not %v", seed, k, id, want, got)
				}
			}
		}
	}
}
