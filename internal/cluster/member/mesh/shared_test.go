package mesh

import (
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

func (b *bench) gatherings() *gatherings {
	return &gatherings{core: b.core, place: b.place, own: func() Tally { return Tally{Nodes: 1, Idle: 1} },
		all: map[gatherKey]*gathering{}}
}

func TestGatheringsAddUpAllParts(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := b.gatherings()
	var sum *Tally
	s.gather(false, func(t Tally) { sum = &t })
	asked := out[Send](b)
	answer := func(q Send) {
		w := varint.Writer{messageTally}
		w.Uint(tail(q.Data).Uint())
		w.Bool(true)
		(&Tally{Nodes: 3, Idle: 2, Figures: []int64{7}}).append(&w)
		if err := s.answered(q.To, tail(w)); err != nil {
			t.Error(err)
		}
	}
	answer(asked[0])
	answer(asked[0]) // the message arrives twice
	if len(asked) > 1 {
		b.want("ended before the last answer", sum == nil, true)
		answer(asked[1])
	}
	b.want("nodes", sum.Nodes, 1+3*len(asked))
	b.want("idle", sum.Idle, 1+2*len(asked))
	b.want("figures", sum.Figures, []int64{7 * int64(len(asked))})
	b.want("kept", len(s.all), 0)
}

func TestGatheringsCountSilentPartsAsMissing(t *testing.T) {
	b := newBench(t, "a~1")
	s := b.gatherings()
	var sum *Tally
	s.gather(false, func(t Tally) { sum = &t })
	b.pass(gatherTries * gatherEvery)
	b.want("doubts", out[Suspect](b), []Suspect{{Node: "a~1"}})
	b.pass(gatherFor)
	b.want("missing", sum.Missing, 1)
}

func TestTerminationNeedsTwoEqualTallies(t *testing.T) {
	for _, c := range []struct {
		what          string
		first, second Tally
		ended         int
	}{
		{"all idle", Tally{Nodes: 2, Idle: 2, Fingerprint: 5}, Tally{Nodes: 2, Idle: 2, Fingerprint: 5}, 1},
		{"one is not", Tally{Nodes: 2, Idle: 1}, Tally{Nodes: 2, Idle: 2}, 0},
		{"one has received something", Tally{Nodes: 2, Idle: 2, Fingerprint: 5}, Tally{Nodes: 2, Idle: 2, Fingerprint: 6}, 0},
		{"one part is missing", Tally{Nodes: 2, Idle: 2, Missing: 1}, Tally{Nodes: 2, Idle: 2}, 0},
		{"it waits for others", Tally{Nodes: 2, Idle: 2, AwaitingPeers: 1}, Tally{Nodes: 2, Idle: 2, AwaitingPeers: 1}, 0},
	} {
		b := newBench(t)
		tallies := []Tally{c.first, c.second}
		e := &termination{core: b.core, place: b.place, version: func() uint64 { return 4 },
			own: func() Tally { return Tally{Nodes: 1, Idle: 1} },
			gather: func(_ bool, f func(Tally)) {
				next := tallies[0]
				tallies = tallies[1:]
				f(next)
			}}
		e.schedule()
		e.schedule()
		b.pass(endEvery)
		b.want(c.what, len(out[Ended](b)), c.ended)
	}
}

// TestGossipSpreads lets two nodes exchange messages; one of them has a record and a chunk.
func TestGossipSpreads(t *testing.T) {
	one, two := newBench(t, "other~1"), newBench(t, "other~1")
	chunk := []byte("seeds")
	has := &gossip{core: one.core, place: one.place, died: func() []strategy.Node { return nil },
		read: func(ChunkID) ([]byte, error) { return chunk, nil }}
	lacks := &gossip{core: two.core, place: two.place, died: has.died}
	has.change([]byte("runs"))
	has.addChunk(chunk, one.place.width)
	one.want("sent at once", len(out[Send](one)), 2)
	lacks.sync()
	deliver := func(from *bench, to *gossip) {
		handlers := map[byte]messageHandler{messageRecord: to.receiveRecord, messageVersion: to.receiveVersion,
			messageChunk: to.receiveChunk, messageHave: to.receiveHave, messageWant: to.receiveWant}
		for _, s := range out[Send](from) {
			if err := handlers[s.Data[0]]("other~1", tail(s.Data)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 {
		deliver(two, has)
		deliver(one, lacks)
	}
	two.want("record", string(lacks.record.Data), "runs")
	two.want("chunks", lacks.chunks.all, has.chunks.all)
}

func TestCountsNeverFall(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	pages := int64(10)
	s := newCounts(b.core, b.place, func() int64 { return pages }, map[strategy.Node]int64{benchSelf: 30, "gone~1": 7})
	s.raise("gone~1", 5, "a~1")
	b.want("counts", s.all(), map[strategy.Node]int64{benchSelf: 30, "gone~1": 7})
	b.want("sent", s.send(), true)
	b.want("sent again", s.send(), false)
	pages = 40
	b.want("sent when it has grown", s.send(), true)
	var sum Tally
	pages = 38
	s.addGone(&sum)
	gone := int64(0)
	if b.place.closest(b.place.nodeID("gone~1")) {
		gone = 7
	}
	b.want("pages of nodes that have gone, and that this process has not fetched", sum.DepartedPages, 2+gone)
}

// risks returns risks whose pieces have the requested lengths.
func (b *bench) risks(lists map[strategy.Node]map[string]int64) *risks {
	return newRisks(b.core, b.place, b, time.Minute, lists)
}

func (b *bench) readRisks(r *risks) {
	for _, read := range out[ReadRisk](b) {
		size := r.lists.sizes[read.Name] - read.From
		call(r.lists.sender.reading, read.ID, RiskRead{ID: read.ID, Data: make([]byte, min(size, int64(read.Most)))})
	}
}

// TestRisksReachTheKeepers has a node and its keeper exchange messages.
func TestRisksReachTheKeepers(t *testing.T) {
	node, keeper := newBench(t, "a~1"), newBench(t)
	lists, wards := node.risks(nil), keeper.risks(nil)
	size := int64(riskPiece * 3 / 2)
	lists.lists.grown(AtRisk{ID: 1, Lists: []RiskList{{"f", size}}})
	safe := 0
	for range 10 {
		for _, a := range node.core.out {
			switch a := a.(type) {
			case Send:
				_ = wards.wards.receive("node~1", tail(a.Data))
			case Safe:
				safe++
			}
		}
		node.readRisks(lists)
		for _, a := range keeper.core.out {
			switch a := a.(type) {
			case Send:
				_ = lists.acknowledged("a~1", tail(a.Data))
			case WriteRisk:
				call(wards.wards.writing, a.ID, RiskWritten{ID: a.ID})
			}
		}
		node.pass(time.Second)
		keeper.core.out = keeper.core.out[:0]
	}
	node.want("safe", safe, 1)
	keeper.want("the copy", wards.wards.byNode["node~1"].sizes["f"], size)
}

func TestWardsAreLostAfterAWhile(t *testing.T) {
	b := newBench(t, "a~1")
	r := b.risks(map[strategy.Node]map[string]int64{"gone~1": {"f": 3}, "left~1": {"g": 3}})
	s := r.wards
	r.watch()
	b.pass(riskEvery)
	b.want("missing at first", s.missing(), "")
	s.gone(NodeGone{Node: "left~1", Left: true})
	b.want("dropped", out[DropRisk](b), []DropRisk{{Node: "left~1"}})
	s.gone(NodeGone{Node: "gone~1"})
	b.want("missing", s.missing(), "gone~1")
	b.pass(50 * time.Second)
	b.want("lost too soon", len(out[Lost](b)), 0)
	b.pass(30 * time.Second)
	b.want("lost", out[Lost](b), []Lost{{Node: "gone~1"}})
	s.refetched("gone~1")
	b.want("missing", s.missing(), "")
}
