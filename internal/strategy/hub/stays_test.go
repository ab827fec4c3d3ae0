package hub

import (
	"slices"
	"testing"
	"time"

	"kumo/internal/strategy"
)

// TestWhatStaysIsToldOf has a host about to move to a node that dies: it may have stayed, and the epoch is not
// acknowledged before it was looked for.
func TestWhatStaysIsToldOf(t *testing.T) {
	h := New(Config{Self: "a~1"})
	a, b := strategy.Member{Node: "a~1"}, strategy.Member{Node: "b~1"}
	now := time.Unix(1e9, 0)
	step := func(in ...strategy.Event) (surveys, acknowledged bool) {
		now = now.Add(time.Millisecond)
		for _, act := range h.Step(now, in, nil) {
			_, is := act.(strategy.Survey)
			_, done := act.(strategy.Acknowledged)
			surveys, acknowledged = surveys || is, acknowledged || done
		}
		return surveys, acknowledged
	}
	step(strategy.Members{Epoch: 1, Settled: 1, Members: []strategy.Member{a, b}})
	h.synced, h.survey, h.surveyed = true, true, true
	p := h.add("h.example", moving)
	p.holds, p.to = true, "b~1"
	h.schedule(p, now.Add(movePatience))
	step(strategy.Members{Epoch: 2, Settled: 1, Members: []strategy.Member{a, b},
		Moves: []strategy.Move{{Host: "h.example", From: "a~1", To: "b~1"}}})
	surveys, acknowledged := step(strategy.Whole{Epoch: 3}, strategy.Members{Epoch: 3, Settled: 1,
		Members: []strategy.Member{a}})
	if !surveys || acknowledged {
		t.Fatalf("who was to have a host has died: this node looks for it: %v, and the epoch is acknowledged: %v", surveys,
			acknowledged)
	}
	if _, acknowledged := step(strategy.Held{Hosts: []string{"h.example"}}, strategy.Surveyed{}); acknowledged ||
		!slices.ContainsFunc(h.queue, func(p *pending) bool { return p.needsAck }) {
		t.Error("the host is here, and the epoch is acknowledged before the control unit knows")
	}
	h.drop(h.pending["h.example"])
	if _, acknowledged := step(); !acknowledged {
		t.Error("the control unit knows, and the epoch is not acknowledged")
	}
}
