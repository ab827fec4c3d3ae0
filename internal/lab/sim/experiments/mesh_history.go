package experiments

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"kumo/internal/base/xor"
	"kumo/internal/cluster/member/mesh/lists"
)

// MeshHistory has what the paper's procedures do with the records of nodes that join a network, or leave it: see
// package lists.
type MeshHistory struct {
	Nodes       int // at the start
	Records     int
	Join, Leave HistoryMoves
	Misplaced   int // records that are not at the closest node at the end
}

// HistoryMoves sums up some joins or leaves.
type HistoryMoves struct {
	Events int
	Moved  int
	lists.Counts
}

// History lets a tenth of the nodes of networks leave, and as many join, with a hundred records for each node.
func (m *Mesh) History() (all []MeshHistory) {
	for _, n := range []int{8, 100, 1000} {
		w := historyNet{rng: rand.New(rand.NewPCG(m.Seed, uint64(n))), nodes: map[xor.ID]*lists.History{}}
		all = append(all, w.run(n, 100*n))
	}
	return all
}

type historyNet struct {
	rng     *rand.Rand
	ids     []xor.ID // of the nodes
	nodes   map[xor.ID]*lists.History
	records []xor.ID
}

func (w *historyNet) run(nodes, records int) (h MeshHistory) {
	for range nodes {
		w.add(w.id())
	}
	for range records {
		id := w.id()
		w.records = append(w.records, id)
		w.nodes[w.closest(id)].Add(id)
	}
	h.Nodes, h.Records = nodes, records
	for range max(nodes/10, 2) {
		w.leave(&h.Leave)
		w.join(&h.Join)
	}
	for _, id := range w.records {
		if !w.nodes[w.closest(id)].Has(id) {
			h.Misplaced++
		}
	}
	return h
}

func (w *historyNet) id() (id xor.ID) {
	for i := 0; i < len(id); i += 8 {
		binary.BigEndian.PutUint64(id[i:], w.rng.Uint64())
	}
	return id
}

func (w *historyNet) add(id xor.ID) *lists.History {
	h := lists.New(id)
	w.ids, w.nodes[id] = append(w.ids, id), h
	return h
}

func (w *historyNet) closest(id xor.ID) xor.ID {
	best := w.ids[0]
	for _, n := range w.ids[1:] {
		if xor.Compare(n, best, id) < 0 {
			best = n
		}
	}
	return best
}

func (w *historyNet) leave(sum *HistoryMoves) {
	i := w.rng.IntN(len(w.ids))
	id := w.ids[i]
	h := w.nodes[id]
	w.ids[i] = w.ids[len(w.ids)-1]
	w.ids = w.ids[:len(w.ids)-1]
	delete(w.nodes, id)
	moves, n := h.Leave(lists.Contacts{Nodes: w.ids})
	moved := 0
	for _, m := range moves {
		for _, r := range m.IDs {
			w.nodes[m.To].Add(r)
		}
		moved += len(m.IDs)
	}
	sum.add(moved, n)
}

func (w *historyNet) join(sum *HistoryMoves) {
	id := w.id()
	nearest := xor.Bits
	for _, n := range w.ids {
		nearest = min(nearest, id.FirstDiff(n))
	}
	others := w.ids
	h := w.add(id)
	var all lists.Counts
	for _, n := range others {
		if id.FirstDiff(n) != nearest {
			continue
		}
		ids, c := w.nodes[n].Join(id)
		for _, r := range ids {
			h.Add(r)
		}
		all.Whole, all.Compared, all.Kept = all.Whole+c.Whole, all.Compared+c.Compared, all.Kept+c.Kept
	}
	sum.add(h.Len(), all)
}

func (s *HistoryMoves) add(moved int, c lists.Counts) {
	s.Events++
	s.Moved += moved
	s.Whole, s.Compared, s.Kept = s.Whole+c.Whole, s.Compared+c.Compared, s.Kept+c.Kept
}

// history judges what the paper states about its procedures, by the largest network.
func (j *meshJudge) history(all []MeshHistory) {
	h := &all[len(all)-1]
	misplaced := 0
	for _, h := range all {
		misplaced += h.Misplaced
	}
	j.judged.add("the history", "no record is lost or misplaced", misplaced == 0,
		fmt.Sprintf("%d of the last network's %d records, with the corrected procedures", misplaced, h.Records),
		"a procedure is wrong")
	moves := &h.Leave
	j.judged.add("the history", "a node that leaves compares few records", moves.Compared < moves.Whole,
		fmt.Sprintf("of %d nodes: %.0f %% of the records move with their list", h.Nodes,
			shareOf(moves.Whole, moves.Whole+moves.Compared)), "its nearest bucket has many nodes")
	moves = &h.Join
	j.judged.add("the history", "most records stay where a node joins, and are not looked at",
		moves.Kept > moves.Whole+moves.Compared,
		fmt.Sprintf("of %d nodes: %.0f %% of a neighbor's records", h.Nodes,
			shareOf(moves.Kept, moves.Kept+moves.Whole+moves.Compared)),
		"the lists that must be compared are those of far ids, which are the largest")
}

func shareOf(part, all int) float64 { return 100 * float64(part) / float64(max(all, 1)) }
