package quorum

import (
	"testing"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
)

// noArrivals are the arrivals of a node without any.
type noArrivals struct{}

func (noArrivals) undoing() bool                                        { return false }
func (noArrivals) receivedFrom(strategy.Node) ([]member.Transfer, bool) { return nil, true }

// movingPlaces are placements of some epochs that move single hosts of b~1 to c~1.
type movingPlaces map[uint64]map[string]bool

func (p movingPlaces) placed(epoch uint64) bool { return p[epoch] != nil }

func (p movingPlaces) destination(epoch uint64, from strategy.Node) destination {
	return func(host string) strategy.Node {
		if from == "b~1" && p[epoch][host] {
			return "c~1"
		}
		return ""
	}
}

// newTestExports returns the exports of b~1. A host moves to c~1 under epochs 3 to 5.
func newTestExports() *exports {
	goes := map[string]bool{"goes": true}
	env := &env{self: "b~1", timing: member.LAN(), table: &Table{Epoch: 5, Finalized: 2,
		Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}, {Node: "c~1"}},
		Moves:   []Moves{{From: "b~1", Batch: 7, To: []strategy.Node{"c~1"}}}}}
	return &exports{env: env, shift: shiftsNone, arrivals: noArrivals{},
		takeovers:  &takeovers{env: env, nodes: map[strategy.Node]*takeover{}},
		placements: movingPlaces{2: {}, 3: goes, 4: goes, 5: goes},
		movesKnown: func(strategy.Node) bool { return true }}
}

// TestADrainIsOfMovingHosts: a member that keeps most hosts waits only for requests to those that move.
func TestADrainIsOfMovingHosts(t *testing.T) {
	for _, known := range []bool{false, true} {
		x := newTestExports()
		x.movesKnown = func(strategy.Node) bool { return known }
		x.newEpoch(1 << 16)
		x.drain()
		d := actions[member.Drain](x.env)
		switch {
		case len(d) != 1 || d[0].Epoch != 5 || (d[0].Hosts != nil) != known:
			t.Errorf("known %v: %+v", known, d)
		case known && (!d[0].Hosts("goes") || d[0].Hosts("stays")):
			t.Error("it does not wait for the hosts that move, or for others")
		}
	}
}

// TestAnExportEnds takes an export through its stages: it queries the nodes that an earlier process may have reached,
// forgets the hosts that had moved, sends the rest and forgets it.
func TestAnExportEnds(t *testing.T) {
	x := newTestExports()
	x.unsure = true
	x.newEpoch(1 << 16)
	x.advance()
	if q := actions[member.Send](x.env); len(q) != 2 || !x.forgetsPending() {
		t.Fatalf("%d queries are sent", len(q))
	}
	x.applyAnswer(answerMsg{queryMsg{"b~1", "a~1", 5}, nil})
	x.applyAnswer(answerMsg{queryMsg{"b~1", "c~1", 5}, []uint64{3, 1}})
	if x.advance(); len(x.env.actions) > 0 {
		t.Fatalf("%+v before the requests have ended", x.env.actions)
	}
	x.applyDrained(5)
	x.advance()
	old := member.Transfer{From: "b~1", To: "c~1", Epoch: 3}
	forgets := actions[member.Forget](x.env)
	if len(forgets) != 1 || len(forgets[0].Completed) != 1 || forgets[0].Completed[0] != old || !forgets[0].Moved("goes", 0) {
		t.Fatalf("%+v is forgotten of the transfer under epoch 3", forgets)
	}
	x.forgot(member.Forgotten{From: "b~1", Epoch: 5})
	x.advance()
	reads := actions[member.Read](x.env)
	if len(reads) != x.env.timing.Window || reads[0].Owner("goes") != "c~1" || reads[0].Owner("stays") != "" {
		t.Fatalf("%d chunks are requested", len(reads))
	}
	x.chunk(member.Chunk{From: "b~1", Epoch: 5, Attempt: 1 << 16, To: "c~1", Data: []byte("goes")})
	x.chunk(member.Chunk{From: "b~1", Epoch: 5, Attempt: 1 << 16})
	if sent := actions[member.Send](x.env); len(sent) != 2 || x.finished() {
		t.Fatalf("%d chunks are sent", len(sent))
	}
	x.ack("c~1", ackMsg{t: member.Transfer{From: "b~1", To: "c~1", Epoch: 5, Attempt: 1 << 16}, complete: true})
	if x.advance(); len(actions[member.Forget](x.env)) != 1 || x.finished() {
		t.Fatal("what was transferred is not forgotten")
	}
	x.forgot(member.Forgotten{From: "b~1", Epoch: 5})
	if x.advance(); !x.finished() || x.unfinished() || len(x.forgotten) != 2 {
		t.Errorf("the export does not end: %+v, %v", x.nodes["b~1"], x.forgotten)
	}
}

// TestForgetSparesHostsThatCameBack: a host may come to a node that transfers it. If it came under the epoch of the
// transfer, or later, it is not forgotten with it.
func TestForgetSparesHostsThatCameBack(t *testing.T) {
	x := newTestExports()
	e := &export{sender: &sender{from: "b~1", epoch: 5, sent: true,
		flows: map[strategy.Node]*flow{"c~1": {complete: true}}}}
	of := func(epochs ...uint64) (all []member.Transfer) {
		for _, e := range epochs {
			all = append(all, member.Transfer{From: "b~1", To: "c~1", Epoch: e})
		}
		return all
	}
	for name, c := range map[string]struct {
		gone  member.Moved
		under uint64 // the last epoch under which it moved
	}{
		"at the end":             {x.forget(e).Moved, 5},
		"of an earlier one":      {x.movedBy(of(3)), 3},
		"of two earlier ones":    {x.movedBy(of(4, 3)), 4},
		"of one that is settled": {x.movedBy(of(2)), 0},
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
