package hub

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"kumo/internal/strategy"
	"kumo/internal/strategy/leader"
)

// A cluster is some hubs that hear each other at once, and a log. What they probe answers as reach says.
type cluster struct {
	t     testing.TB
	now   time.Time
	hubs  map[strategy.Node]*Hub
	inbox map[strategy.Node][]strategy.Event
	log   [][]byte
	base  int // number of the first entry of log, less one
	wake  map[strategy.Node]map[uint64]time.Time
	reach func(n strategy.Node, host string) time.Duration // 0: never
	moves []handing
	saw   []strategy.Probe
	spare func(n strategy.Node) []strategy.Queue // nil: nothing waits
}

// A handing is a HandOver, and who does it.
type handing struct {
	strategy.HandOver
	from strategy.Node
}

func newCluster(t testing.TB, nodes ...strategy.Node) *cluster {
	c := &cluster{t: t, now: time.Unix(1e9, 0), hubs: map[strategy.Node]*Hub{},
		inbox: map[strategy.Node][]strategy.Event{},
		wake:  map[strategy.Node]map[uint64]time.Time{}, reach: func(strategy.Node,
			string) time.Duration {
			return 10 * time.Millisecond
		}}
	for _, n := range nodes {
		c.hubs[n] = New(Config{Self: n})
		c.wake[n] = map[uint64]time.Time{}
	}
	c.members(1, 1)
	return c
}

func (c *cluster) names() []strategy.Node { return slices.Sorted(maps.Keys(c.hubs)) }

func (c *cluster) members(epoch, settled uint64, moves ...strategy.Move) {
	e := strategy.Members{Epoch: epoch, Settled: settled, Moves: moves}
	for _, n := range c.names() {
		e.Members = append(e.Members, strategy.Member{Node: n})
	}
	for _, n := range c.names() {
		c.tell(n, e)
	}
}

func (c *cluster) tell(n strategy.Node, e strategy.Event) { c.inbox[n] = append(c.inbox[n], e) }

func (c *cluster) want(n strategy.Node, hosts ...string) {
	c.tell(n, strategy.Wanted{Hosts: hosts})
}

// settle lets a minute pass.
func (c *cluster) settle() { c.run(time.Minute) }

func (c *cluster) run(d time.Duration) {
	for end := c.now.Add(d); c.now.Before(end); c.now = c.now.Add(20 * time.Millisecond) {
		for again := true; again; {
			again = false
			for _, n := range c.names() {
				again = c.step(n) || again
			}
		}
	}
}

func (c *cluster) step(n strategy.Node) bool {
	in := c.inbox[n]
	for _, timer := range slices.Sorted(maps.Keys(c.wake[n])) {
		if !c.wake[n][timer].After(c.now) {
			in = append(in, strategy.Fired{Timer: timer})
			delete(c.wake[n], timer)
		}
	}
	if len(in) == 0 {
		return false
	}
	c.inbox[n] = nil
	for _, a := range c.hubs[n].Step(c.now, in, nil) {
		c.carryOut(n, a)
	}
	return true
}

func (c *cluster) carryOut(n strategy.Node, a strategy.Action) {
	switch a := a.(type) {
	case strategy.Send:
		if c.hubs[a.To] != nil {
			c.tell(a.To, strategy.Message{From: n, Data: a.Data})
		}
	case strategy.Persist:
		last := c.base + len(c.log)
		if a.After != uint64(last) {
			c.tell(n, strategy.Persisted{ID: a.ID, State: strategy.Stale})
			return
		}
		c.log = append(c.log, a.Data)
		c.tell(n, strategy.Persisted{ID: a.ID, Number: uint64(last + 1)})
	case strategy.Read:
		for i, data := range c.log {
			if number := uint64(c.base + i + 1); number > a.After {
				c.tell(n, strategy.Logged{Number: number, Data: data})
			}
		}
		c.tell(n, strategy.AtEnd{Last: uint64(c.base + len(c.log))})
	case strategy.Trim:
		if drop := int(a.Before) - c.base - 1; drop > 0 {
			c.log, c.base = c.log[drop:], c.base+drop
		}
	case strategy.Probe:
		c.saw = append(c.saw, a)
		took := c.reach(n, a.Host)
		c.tell(n, strategy.Reached{Host: a.Host, OK: took > 0 && took <= a.Timeout, Connect: took})
	case strategy.HandOver:
		c.moves = append(c.moves, handing{a, n})
	case strategy.Survey:
		c.tell(n, strategy.Surveyed{})
	case strategy.Spare:
		var queues []strategy.Queue
		if c.spare != nil {
			queues = c.spare(n)
		}
		c.tell(n, strategy.Spared{Queues: queues})
	case strategy.Timer:
		c.wake[n][a.Timer] = a.At
	}
}

func (c *cluster) owner(host string) (owners []strategy.Node) {
	for _, n := range c.names() {
		if o, s := c.hubs[n].View().Owner(host); s != strategy.Unknown && o == n {
			owners = append(owners, n)
		}
	}
	return owners
}

func (c *cluster) leader() strategy.Node {
	for _, n := range c.names() {
		if c.hubs[n].elector.Leads() {
			return n
		}
	}
	return ""
}

// TestNearest: who reaches a host in time gets it, and hosts of its domain are offered to it first.
func TestNearest(t *testing.T) {
	c := newCluster(t, "a~1", "b~1", "c~1", "d~1")
	c.reach = func(n strategy.Node, host string) time.Duration {
		if n == "c~1" {
			return time.Millisecond
		}
		return 0
	}
	c.settle()
	c.want("a~1", "one.example.com")
	c.settle()
	if got := c.owner("one.example.com"); !slices.Equal(got, []strategy.Node{"c~1"}) {
		t.Fatalf("the host is %v's", got)
	}
	c.saw = nil
	c.want("b~1", "two.example.com")
	c.settle()
	if got := c.owner("two.example.com"); !slices.Equal(got, []strategy.Node{"c~1"}) || len(c.saw) != 1 {
		t.Errorf("its neighbour is %v's after %d probes", got, len(c.saw))
	}
	for _, n := range []strategy.Node{"a~1", "b~1"} {
		if o, s := c.hubs[n].View().Owner("one.example.com"); n == "a~1" && (o != "c~1" || s != strategy.Owned) {
			t.Errorf("%s knows that it is %s's (%v)", n, o, s)
		}
	}
}

// TestNobodyReachesIt: the host is parked, tried again with longer timeouts, and left to its owner in the end.
func TestNobodyReachesIt(t *testing.T) {
	c := newCluster(t, "a~1", "b~1")
	c.reach = func(strategy.Node, string) time.Duration { return 0 }
	c.settle()
	c.want("a~1", "far.example.com")
	c.run(5 * time.Second)
	if _, s := c.hubs["a~1"].View().Owner("far.example.com"); s != strategy.Parked {
		t.Fatalf("it is %v", s)
	}
	c.want("b~1", "far.example.com")
	c.run(2 * time.Second)
	if o, s := c.hubs["b~1"].View().Owner("far.example.com"); o != "a~1" || s != strategy.Owned {
		t.Errorf("b sends its links to %q (%v)", o, s)
	}
	parked := 0
	err := Look(c.hubs["a~1"].cfg.Key, c.read, func(h Host) bool {
		if parked++; h.State != "parked" || h.Owner != "a~1" || len(h.Failed) != 2 || h.Round != 1 || h.Again.Before(c.now) {
			t.Errorf("%+v", h)
		}
		return true
	})
	if err != nil || parked != 1 {
		t.Errorf("%d hosts, %v", parked, err)
	}
	c.run(2 * time.Minute)
	if _, s := c.hubs["a~1"].View().Owner("far.example.com"); s != strategy.Owned {
		t.Errorf("in the end it is %v", s)
	}
	if first, last := c.saw[0].Timeout, c.saw[len(c.saw)-1].Timeout; len(c.saw) != 6 || last < 4*first {
		t.Errorf("%d probes, the last for %v, the first for %v", len(c.saw), last, first)
	}
}

func (c *cluster) read(f func(uint64, []byte) error) error {
	for i, data := range c.log {
		if err := f(uint64(c.base+i+1), data); err != nil {
			return err
		}
	}
	return nil
}

// TestAParkedHostIsReachedByAnother: its owner hands it over.
func TestAParkedHostIsReachedByAnother(t *testing.T) {
	c := newCluster(t, "a~1", "b~1")
	up := false
	c.reach = func(n strategy.Node, _ string) time.Duration {
		if up && n == "b~1" {
			return time.Millisecond
		}
		return 0
	}
	c.settle()
	c.want("a~1", "far.example.com")
	c.run(5 * time.Second)
	up = true
	c.run(30 * time.Second)
	if len(c.moves) != 1 || c.moves[0].To != "b~1" {
		t.Fatalf("moves: %v", c.moves)
	}
	if got := c.owner("far.example.com"); len(got) != 0 {
		t.Errorf("it is %v's before it has come", got)
	}
	c.tell("b~1", strategy.Held{Hosts: []string{"far.example.com"}})
	c.run(time.Second)
	if got := c.owner("far.example.com"); !slices.Equal(got, []strategy.Node{"b~1"}) {
		t.Errorf("it is %v's when it has come", got)
	}
}

// TestAnotherTakesItsPlace: who takes a control unit's place has its table, however often the log was trimmed, and the
// one before decides nothing.
func TestAnotherTakesItsPlace(t *testing.T) {
	c := newCluster(t, "a~1", "b~1", "c~1")
	c.settle()
	if c.leader() != "a~1" {
		t.Fatalf("the control unit is %q", c.leader())
	}
	const hosts = 30_000
	for i := 0; i < hosts; i += 500 {
		var some []string
		for k := range 500 {
			some = append(some, fmt.Sprintf("h%d.example%d.com", i+k, i%7))
		}
		c.want([]strategy.Node{"a~1", "b~1", "c~1"}[i/500%3], some...)
		c.run(3 * time.Second)
	}
	c.settle()
	if c.base == 0 {
		t.Error("the log was never trimmed")
	}
	old := c.hubs["a~1"]
	delete(c.hubs, "a~1")
	c.run(8 * time.Second)
	if c.leader() != "b~1" {
		t.Fatalf("8 s after its end the control unit is %q", c.leader())
	}
	if got, want := c.hubs["b~1"].controller.table.Len(), old.controller.table.Len(); got != want || want != hosts {
		t.Errorf("it has %d hosts, not %d", got, want)
	}
	c.members(2, 2) // without the dead one
	late := newCluster(t, "d~1")
	late.log, late.base = c.log, c.base
	late.run(5 * time.Second)
	if got := late.hubs["d~1"].controller.table.Len(); got != hosts {
		t.Errorf("who reads what is left of the log has %d hosts, not %d", got, hosts)
	}
	c.hubs["a~1"] = old // it comes back and believes in itself
	c.tell("a~1", strategy.Wanted{Hosts: []string{"late.example.com"}})
	c.run(30 * time.Second)
	if old.elector.Leads() {
		t.Error("two lead")
	}
}

// BenchmarkClaims is what a control unit decides in a second, each claim's persisting included but for the log itself.
func BenchmarkClaims(b *testing.B) {
	c := newCluster(b, "a~1", "b~1")
	c.settle()
	u := c.hubs["a~1"]
	hosts := make([]string, 0, 1000)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		hosts = hosts[:0]
		var w = []item{}
		for range 1000 {
			n++
			w = append(w, item{kind: itemClaim, host: fmt.Sprintf("www%d.example%d.com", n, n%1000), number: 5000})
		}
		h := c.hubs["b~1"]
		for _, it := range w {
			h.post("a~1", leader.Question, it)
		}
		h.out = nil
		h.deliver()
		for _, a := range h.out {
			c.carryOut("b~1", a)
		}
		c.step("a~1")
		c.step("a~1")
		c.inbox["b~1"] = nil
		c.log, c.base = nil, c.base+len(c.log)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "claims/s")
	if u.controller.table.Len() < n*9/10 {
		b.Errorf("%d of %d claims were granted", u.controller.table.Len(), n)
	}
}
