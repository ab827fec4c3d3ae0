package central

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central/hosttable"
)

// TestWhatStaysIsToldOf: a host is moving to a node that dies. It may have stayed, so the epoch is not acknowledged
// before a survey.
func TestWhatStaysIsToldOf(t *testing.T) {
	s := newNobody("a~1")
	a, b := strategy.Member{Node: "a~1"}, strategy.Member{Node: "b~1"}
	now := time.Unix(1e9, 0)
	step := func(in ...strategy.Event) (surveys, acknowledged bool) {
		now = now.Add(time.Millisecond)
		for _, act := range s.Step(now, in, nil) {
			_, is := act.(strategy.Survey)
			_, done := act.(strategy.Acknowledged)
			surveys, acknowledged = surveys || is, acknowledged || done
		}
		return surveys, acknowledged
	}
	step(strategy.Members{Epoch: 1, Settled: 1, Members: []strategy.Member{a, b}})
	s.synced, s.survey, s.surveyed = true, true, true
	p := s.pending.add("s.example", moving)
	p.holds, p.target = true, "b~1"
	s.pending.schedule(p, now.Add(MoveTimeout))
	step(strategy.Members{Epoch: 2, Settled: 1, Members: []strategy.Member{a, b},
		Moves: []strategy.Move{{Host: "s.example", From: "a~1", To: "b~1"}}})
	surveys, acknowledged := step(strategy.TransfersComplete{Epoch: 3}, strategy.Members{Epoch: 3, Settled: 1,
		Members: []strategy.Member{a}})
	if !surveys || acknowledged {
		t.Fatalf("who was to have a host has died: this node looks for it: %v, and the epoch is acknowledged: %v", surveys,
			acknowledged)
	}
	if _, acknowledged := step(strategy.Held{Hosts: []string{"s.example"}}, strategy.Surveyed{}); acknowledged ||
		!slices.ContainsFunc(s.pending.queue, func(p *pending) bool { return p.needsAck }) {
		t.Error("the host is here, and the epoch is acknowledged before the leader knows")
	}
	s.pending.drop(s.pending.hosts["s.example"])
	if _, acknowledged := step(); !acknowledged {
		t.Error("the leader knows, and the epoch is not acknowledged")
	}
}

// TestWhatComesLateStays: a host arrives long after its move was decided, because the log was not writable. It stays as
// long as other moved hosts.
func TestWhatComesLateStays(t *testing.T) {
	const stay = 15 * time.Second
	for _, took := range []time.Duration{time.Second, 14 * time.Second} {
		s := newNobody("a~1")
		s.Step(time.Unix(1e9, 0), []strategy.Event{strategy.Members{Epoch: 1, Settled: 1,
			Members: []strategy.Member{{Node: "a~1"}, {Node: "b~1"}}}}, nil)
		l := newLeader(s.clusterState, s.output, s.elector, func(*Leader) Policy { return nobodys{} })
		l.Set("s.example", hosttable.Row{Owner: "a~1", State: Promised, Round: Moved})
		s.now = s.now.Add(took)
		l.ResolveHolder("a~1", "s.example")
		s.now = s.now.Add(stay - 2*time.Second)
		if r := l.Row("s.example"); r.State != Reached || took > maxMoveDelay && !l.MovedRecently(r, "b~1", stay) {
			t.Errorf("it came after %v, and may move again after %v: %+v", took, stay-2*time.Second, r)
		}
		s.now = s.now.Add(3 * time.Second)
		if l.MovedRecently(l.Row("s.example"), "b~1", stay) {
			t.Errorf("it came after %v, and stays longer than %v", took, stay)
		}
	}
}
