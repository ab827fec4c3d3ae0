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
		l.machines[n].Start(l.now, nil)
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

// paperConfig returns the configuration of a node with an area of five blocks.
func paperConfig() Config {
	terms := Terms{StrategyPaper, 20, 10 * time.Minute}
	return Config{Terms: terms, Earlier: Earlier{Terms: AgreedTerms{terms, time.Unix(1e9, 0)}},
		Balance: BalanceConfig{Area: 5}}
}

func TestPaperBalanceGivesAllExcessOrNothing(t *testing.T) {
	for _, c := range []struct{ waiting, want, partial int64 }{
		{5 * 20, 0, 0}, // its area is full
		{7 * 20, 2 * 20, 2 * 20},
		{9 * 20, 4 * 20, 4 * 20},
		{10 * 20, 0, 5 * 20}, // the levels add up to 0
		{1000 * 20, 0, 5 * 20},
	} {
		l := newLoads(t, paperConfig(), "a~1", "b~1")
		l.load("b~1", 0)
		if got := l.load("a~1", c.waiting); got != c.want {
			t.Errorf("with %d pending URLs, %d are given, want %d", c.waiting, got, c.want)
		}
		cfg := paperConfig()
		cfg.Balance.Partial = true
		l = newLoads(t, cfg, "a~1", "b~1")
		l.load("b~1", 0)
		if got := l.load("a~1", c.waiting); got != c.partial {
			t.Errorf("with %d pending URLs, as many as fit are %d, want %d", c.waiting, got, c.partial)
		}
	}
}

// TestRoomIsReservedOnce has two heavy nodes and a light one, which gets no new Load for long after it has reserved
// room.
func TestRoomIsReservedOnce(t *testing.T) {
	l := newLoads(t, paperConfig(), "a~1", "b~1", "c~1")
	l.load("b~1", 20)
	if got := l.load("a~1", 160); got != 3*20 {
		t.Fatalf("a is asked to give %d URLs", got)
	}
	if got := l.load("c~1", 160); got != 0 {
		t.Errorf("c is asked to give %d URLs, for room that is reserved for a", got)
	}
	l.pass(5 * time.Minute)
	l.load("a~1", 100)
	l.load("b~1", 60) // 40 of a's have arrived
	if got := l.load("c~1", 120); got != 20 {
		t.Errorf("c is asked to give %d URLs, want 20", got)
	}
	l.pass(time.Second)
	l.load("c~1", 100)
	l.load("b~1", 60) // none of c's have arrived yet
	if got := l.load("a~1", 120); got != 0 {
		t.Errorf("a is asked to give %d URLs, for room that is reserved for c", got)
	}
	l.pass(time.Minute)
	l.load("b~1", 60) // none will
	if got := l.load("a~1", 120); got != 20 {
		t.Errorf("a is asked to give %d URLs, want 20", got)
	}
}

// By the paper, a heavy node gives all its excess, to the first light node of the first bucket with room for it.
func TestExactPaperBalance(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	hosts := &fakeBalanced{lent: nil}
	s := newTestPaper(b, hosts, lent{})
	s.loaded(Load{Waiting: 200}) // also if the engine waits for hosts
	b.want("level", s.load.Level, 5)
	s.moving = false
	for _, x := range []struct {
		a, b int64
		to   []int64 // reserved blocks
	}{{-3, -1, nil}, {-3, -3, nil}, {-4, -5, []int64{5}}, {-5, -6, []int64{5}}, {3, -9, []int64{5}}} {
		b.posts = nil
		s.chooseLight(b.place.width-1, []strategy.Node{"a~1", "b~1"}, map[strategy.Node]int64{"a~1": x.a, "b~1": x.b})
		var got []int64
		for _, p := range b.posts {
			if p.it.kind == itemReserve {
				got = append(got, p.it.number)
				if want := strategy.Node("b~1"); x.a > -5 && p.to != want {
					t.Errorf("levels %d and %d: to %s, not %s", x.a, x.b, p.to, want)
				}
			}
		}
		b.want("reserved", got, x.to)
	}
}
