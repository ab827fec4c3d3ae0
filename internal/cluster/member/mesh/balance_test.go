package mesh

import (
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// loads are machines that know each other, with given loads. Messages between them arrive at once.
type loads struct {
	t        *testing.T
	now      time.Time
	machines map[strategy.Node]*Machine
	spared   map[strategy.Node]int64 // URLs that each node was asked to give, since the last call of load
}

func newLoads(t *testing.T, cfg Config, nodes ...strategy.Node) *loads {
	l := &loads{t: t, now: time.Unix(1e9, 0), machines: map[strategy.Node]*Machine{}, spared: map[strategy.Node]int64{}}
	cfg.HasPending = func(string) bool { return false }
	for _, n := range nodes {
		cfg.Self, cfg.Overlay = n, everybody{n, nodes}
		l.machines[n] = New(cfg)
	}
	for _, n := range nodes {
		l.tell(n, NeighborsChanged{}, Fresh{l.now.Add(24 * time.Hour)})
	}
	return l
}

func (l *loads) tell(n strategy.Node, events ...Event) {
	for _, a := range l.machines[n].Step(l.now, events, nil) {
		switch a := a.(type) {
		case Send:
			l.tell(a.To, Message{From: n, Data: a.Data})
		case Spare:
			l.spared[n] += a.URLs
			l.tell(n, Spared{To: a.To})
		}
	}
}

// pass advances the time.
func (l *loads) pass(d time.Duration) {
	for end := l.now.Add(d); l.now.Before(end); {
		l.now = l.now.Add(time.Second)
		for _, n := range []strategy.Node{"a~1", "b~1", "c~1"} {
			if l.machines[n] != nil {
				l.tell(n, Tick{})
			}
		}
	}
}

// load sets a node's pending URLs, and returns how many it is asked to give.
func (l *loads) load(n strategy.Node, waiting int64) int64 {
	delete(l.spared, n)
	l.tell(n, Load{Waiting: waiting, Busy: true})
	return l.spared[n]
}

// TestWhoHasFarTooMuchGivesWhatOthersHaveRoomFor has a node with more than all others have room for.
func TestWhoHasFarTooMuchGivesWhatOthersHaveRoomFor(t *testing.T) {
	for _, c := range []struct {
		waiting            int64
		want, allOrNothing int64
	}{
		{5 * 20, 0, 0}, // its area is full
		{7 * 20, 2 * 20, 2 * 20},
		{9 * 20, 4 * 20, 4 * 20},
		{10 * 20, 5 * 20, 0},
		{1000 * 20, 5 * 20, 0},
	} {
		l := newLoads(t, Config{Balance: BalanceConfig{Area: 5, Block: 20}}, "a~1", "b~1")
		l.load("b~1", 0)
		if got := l.load("a~1", c.waiting); got != c.want {
			t.Errorf("with %d waiting %d are given, want %d", c.waiting, got, c.want)
		}
		l = newLoads(t, Config{Balance: BalanceConfig{Area: 5, Block: 20, AllOrNothing: true}}, "a~1", "b~1")
		l.load("b~1", 0)
		if got := l.load("a~1", c.waiting); got != c.allOrNothing {
			t.Errorf("with %d waiting %d are given where it is all or nothing, want %d", c.waiting, got, c.allOrNothing)
		}
	}
}

// TestRoomIsPromisedOnce has two heavy nodes and a light one, which gets no new Load for long after it has reserved
// room.
func TestRoomIsPromisedOnce(t *testing.T) {
	l := newLoads(t, Config{Balance: BalanceConfig{Area: 5, Block: 20, Interval: 10 * time.Minute}}, "a~1", "b~1", "c~1")
	l.load("b~1", 20)
	if got := l.load("a~1", 1000); got != 4*20 {
		t.Fatalf("a is asked to give %d URLs", got)
	}
	l.pass(5 * time.Minute)
	if got := l.load("c~1", 1000); got != 0 {
		t.Errorf("c is asked to give %d URLs, for room that a was promised", got)
	}
	l.load("b~1", 60) // 40 of a's have arrived
	if got := l.load("c~1", 1000); got != 2*20 {
		t.Errorf("c is asked to give %d URLs, want 40", got)
	}
	l.pass(time.Second)
	l.load("b~1", 60) // none of c's have arrived yet
	if got := l.load("a~1", 1000); got != 0 {
		t.Errorf("a is asked to give %d URLs, for room that c has just been promised", got)
	}
	l.pass(time.Minute)
	l.load("b~1", 60) // none will
	if got := l.load("a~1", 1000); got != 2*20 {
		t.Errorf("a is asked to give %d URLs, want 40", got)
	}
}
