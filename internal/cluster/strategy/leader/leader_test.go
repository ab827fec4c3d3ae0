package leader_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/leader"
)

// TestTakeover: the first member leads. When it is silent, the next candidate leads and has all names, even if the log
// was trimmed.
func TestTakeover(t *testing.T) {
	c := newCluster(t, 1, "a", "b", "c", "d")
	c.run(time.Second)
	c.leads("a")
	for range 50 {
		c.ask(10)
		c.run(500 * time.Millisecond)
	}
	c.run(2 * beat)
	c.settled()
	if c.log[0].Number < 10 || len(c.log) > 40 {
		t.Errorf("the log has entries %d to %d", c.log[0].Number, c.last)
	}
	if c.nodes["d"].elector.Candidate() {
		t.Error("the fourth member is a candidate")
	}
	delete(c.nodes, "a")
	c.run(silence - 2*beat)
	c.leads()
	c.run(3 * beat)
	c.leads("b")
	if after := c.nodes["b"].replica.elected; !slices.Equal(after, []strategy.Node{"a"}) {
		t.Errorf("b leads after %v", after)
	}
	delete(c.nodes, "b")
	c.ask(10)
	c.run(silence + silence/2 + beat)
	c.leads("c")
	c.members("c", "d")
	c.run(2 * beat)
	c.settled()
	if !c.nodes["d"].elector.Candidate() {
		t.Error("the second of two members is no candidate")
	}
}

// TestTwoLeaders: an isolated former leader writes nothing, soon stops answering, and gives way when it hears from the
// new leader.
func TestTwoLeaders(t *testing.T) {
	c := newCluster(t, 2, "a", "b", "c")
	c.run(time.Second)
	c.leads("a")
	c.cut["a"] = true
	c.nodes["a"].wants["by a"] = true
	c.run(silence + beat)
	c.leads("a", "b")
	c.nodes["b"].wants["by b"] = true
	c.run(2 * silence)
	c.leads("a", "b")
	if c.added["by a"] != 0 || c.added["by b"] != 1 {
		t.Errorf("added: %v", c.added)
	}
	question := strategy.Message{From: "c", Data: []byte{byte(leader.Question), 0, 1}}
	if kind, _ := c.nodes["a"].elector.Receive(c.now, question); kind != leader.None {
		t.Error("who has not reached the log for long takes questions")
	}
	delete(c.cut, "a")
	c.run(2 * silence)
	c.leads("b")
	if a := c.nodes["a"].replica; a.deposed != 1 {
		t.Errorf("a was deposed %d times", a.deposed)
	}
	if c.added["by a"] != 1 {
		t.Error("what was asked of the deposed one was never added")
	}
	c.settled()
}

// TestAppendInDoubt: whatever happens to a request to the log and to its answer, an entry is in the log once.
func TestAppendInDoubt(t *testing.T) {
	for name, f := range map[string]fate{
		"it is lost":                    {-1, time.Hour},
		"its answer is lost":            {tick, time.Hour},
		"its answer comes late":         {tick, persistPatience},
		"it comes behind the next one":  {persistPatience + retry + 4*tick, time.Hour},
		"it comes when it is looked at": {persistPatience + retry, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, "a", "b", "c")
			c.run(time.Second)
			c.leads("a")
			c.persist = func(fate) fate { c.persist = nil; return f }
			c.ask(3)
			c.run(3 * silence)
			c.leads("a")
			c.settled()
			if len(c.begun) != 1 {
				t.Errorf("%d terms", len(c.begun))
			}
		})
	}
}

// TestElectionInDoubt: the same for the start of a term.
func TestElectionInDoubt(t *testing.T) {
	for name, f := range map[string]fate{
		"it is lost":         {-1, time.Hour},
		"its answer is lost": {tick, time.Hour},
		"it comes late":      {persistPatience + retry + 4*tick, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4, "a", "b", "c")
			c.persist = func(fate) fate { c.persist = nil; return f }
			c.ask(3)
			c.run(3 * silence)
			if n := len(c.leaders()); n != 1 {
				t.Errorf("%d lead", n)
			}
			c.settled()
		})
	}
}

// TestWhoHearsLate: a node does not lead if it learns that its term has started after another node has ended it.
func TestWhoHearsLate(t *testing.T) {
	c := newCluster(t, 9, "a", "b")
	delete(c.nodes, "b")
	c.persist = func(fate) fate {
		c.persist = nil
		c.after(2*tick, func() {
			c.last++
			c.log = append(c.log, strategy.LogEntry{Number: c.last, Data: varint.Writer{2, 1, 1, 'b'}})
		})
		return fate{tick, persistPatience}
	}
	c.run(silence - beat)
	if c.last != 2 || len(c.nodes["a"].replica.elected) > 0 {
		t.Errorf("%d entries, a was elected after %q: %v", c.last, c.nodes["a"].replica.elected, c)
	}
}

// TestMembers: a leader continues when others come before it in the order of members, but does not return to the
// candidates afterwards. It stops when it is no longer a member.
func TestMembers(t *testing.T) {
	c := newCluster(t, 10, "e", "f", "g")
	c.run(time.Second)
	c.leads("e")
	for _, n := range []strategy.Node{"a", "b", "c"} {
		c.start(n)
	}
	c.members(c.names()...)
	c.run(3 * silence)
	c.leads("e")
	for n, node := range c.nodes {
		if node.elector.Candidate() != (n < "f") {
			t.Errorf("%s is a candidate: %v", n, node.elector.Candidate())
		}
	}
	c.cut["e"] = true
	c.run(2 * silence)
	c.leads("a", "e")
	clear(c.cut)
	c.run(4 * silence)
	c.leads("a")
	if len(c.begun) != 2 {
		t.Errorf("%d terms", len(c.begun))
	}
	c.members("b", "c", "e")
	c.run(2 * tick)
	if c.nodes["a"].elector.Leads() {
		t.Error("who is no member leads")
	}
	c.run(2 * beat)
	c.leads("b")
	c.ask(5)
	c.members(c.names()...)
	c.run(2 * beat)
	c.settled()
}

// TestAnEarlierEpoch: a node with an older epoch than the last leader's does not start a term.
func TestAnEarlierEpoch(t *testing.T) {
	c := newCluster(t, 5, "a")
	late := varint.Writer{1, 2, 1, 'b'} // in epoch 2, by b
	c.log, c.last = []strategy.LogEntry{{Number: 1, Data: late}}, 1
	c.run(4 * silence)
	c.leads()
	c.members("a")
	c.run(2 * beat)
	c.leads("a")
}

// TestUnreadable: a node that cannot read an entry no longer leads; others that can do.
func TestUnreadable(t *testing.T) {
	for name, blind := range map[string][]strategy.Node{"all": {"a", "b", "c"}, "the leader": {"a"},
		"who would follow": {"b"}} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 6, "a", "b", "c")
			c.run(time.Second)
			c.leads("a")
			for _, n := range blind {
				c.nodes[n].blind = true
			}
			c.ask(1)
			c.run(time.Second)
			if !slices.Contains(blind, "a") {
				delete(c.nodes, "a")
			}
			c.run(3 * silence)
			switch {
			case len(blind) == 3:
				c.leads()
				if c.last != 2 {
					t.Errorf("%d entries", c.last)
				}
			case blind[0] == "a":
				c.leads("b")
			default:
				c.leads("c")
			}
		})
	}
}

// TestGarbage: a leader that finds an invalid entry after its own stops leading.
func TestGarbage(t *testing.T) {
	c := newCluster(t, 7, "a", "b", "c")
	c.run(time.Second)
	c.leads("a")
	c.last++
	c.log = append(c.log, strategy.LogEntry{Number: c.last, Data: []byte{1, 1, 200}})
	c.run(3 * silence)
	c.leads()
	if a := c.nodes["a"].replica; a.deposed != 1 {
		t.Errorf("a was deposed %d times", a.deposed)
	}
}

// TestAnswers: answers that arrive after a later one, and those of earlier terms, are dropped. Nodes that do not lead
// name the leader.
func TestAnswers(t *testing.T) {
	a := newTally("a")
	now := time.Unix(1e9, 0)
	members := strategy.Members{Epoch: 1}
	for _, n := range []strategy.Node{"a", "b", "c", "d"} {
		members.Members = append(members.Members, strategy.Member{Node: n})
	}
	a.step(now, []strategy.Event{members})
	receive := func(from strategy.Node, data ...byte) (leader.Kind, string) {
		a.out = nil
		kind, rest := a.elector.Receive(now, strategy.Message{From: from, Data: data})
		return kind, string(rest)
	}
	for _, m := range []struct {
		from         strategy.Node
		term, number byte
		heeded       bool
		leader       strategy.Node
	}{
		{"b", 2, 7, true, "b"}, {"b", 2, 7, false, "b"}, {"b", 2, 6, false, "b"}, {"b", 2, 9, true, "b"},
		{"c", 1, 10, false, "b"}, {"c", 3, 1, true, "c"}, {"b", 2, 11, false, "c"}, {"c", 3, 2, true, "c"},
	} {
		kind, rest := receive(m.from, 'a', m.term, m.number, 'x')
		if heeded := kind == leader.Answer && rest == "x"; heeded != m.heeded || a.elector.Leader() != m.leader {
			t.Errorf("%v: heeded: %v, the leader is %s", m, heeded, a.elector.Leader())
		}
	}
	if kind, _ := receive("d", 'q', 0, 1, 'x'); kind != leader.None || len(a.out) != 1 {
		t.Fatalf("a question is answered by %v", a.out)
	}
	d := newTally("d")
	d.step(now, []strategy.Event{members, strategy.Message{From: "a", Data: a.out[0].(strategy.Send).Data}})
	if d.elector.Leader() != "c" {
		t.Errorf("who was told asks %q", d.elector.Leader())
	}
	for i, want := range []strategy.Node{"a", "b", "c", "a"} {
		d.elector.RequestSent(now)
		now = now.Add(4 * retry)
		d.elector.Advance(now)
		if got := d.elector.Leader(); got != want {
			t.Errorf("after %d questions without an answer it asks %q, not %q", i+1, got, want)
		}
	}
}

// TestFaults adds names while messages and requests are lost, late and duplicated, and nodes die, are isolated, join
// and leave: KUMO_TEST_SEEDS times, or a few.
func TestFaults(t *testing.T) {
	seeds, _ := strconv.ParseUint(os.Getenv("KUMO_TEST_SEEDS"), 10, 64)
	first, _ := strconv.ParseUint(os.Getenv("KUMO_TEST_FIRST"), 10, 64)
	terms := 0
	for seed := first; seed < first+cmp.Or(seeds, 40); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			c := newCluster(t, seed, "a", "b", "c", "d", "e")
			c.faults = 0.1
			for range 60 {
				c.ask(c.rng.IntN(8))
				c.trouble()
				c.run(time.Duration(c.rng.Int64N(int64(silence))))
			}
			c.faults = 0
			clear(c.cut)
			c.members(c.names()...)
			c.run(10 * silence)
			if all := c.leaders(); len(all) != 1 {
				t.Errorf("%v lead", all)
			}
			c.settled()
			terms += len(c.begun)
		})
	}
	t.Logf("%d terms", terms)
}

func (c *cluster) trouble() {
	n := c.names()[c.rng.IntN(5)]
	switch c.rng.IntN(6) {
	case 0:
		c.start(n)
	case 1:
		c.cut[n] = true
	case 2, 3:
		clear(c.cut)
	case 4: // it leaves and joins again
		c.members(slices.DeleteFunc(c.names(), func(m strategy.Node) bool { return m == n })...)
	case 5:
		c.members(c.names()...)
	}
}

// FuzzEntry decodes arbitrary log data.
func FuzzEntry(f *testing.F) {
	f.Add([]byte{1, 1, 1, 'a'})
	f.Add([]byte{1, 1, 1, 'a', 2, 1, 'n', 15, 0, 3, 1, 'n', 7})
	f.Add([]byte{1, 1, 1, 'a', 0, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := leader.ParseEntry(data)
		if err != nil {
			return
		}
		if again, err := leader.ParseEntry(data); err != nil || again.Term != e.Term || again.By != e.By {
			t.Error("read twice, it is another")
		}
		var s times
		_ = e.Load(&s)
	})
}

// FuzzReceive sends arbitrary data to a leader and to another node.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{'q', 0, 1, 'x'})
	f.Add([]byte{'a', 1, 2, 'x'})
	f.Add([]byte{'b', 3, 2})
	f.Add([]byte{'n', 3, 2, 1, 'c'})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := newCluster(t, 8, "a", "b", "c", "d")
		c.run(time.Second)
		for _, n := range []strategy.Node{"a", "d"} {
			e := c.nodes[n].elector
			e.Receive(c.now, strategy.Message{From: "b", Data: data})
			if to := e.Leader(); to != "" && !slices.Contains([]strategy.Node{"a", "b", "c", "d"}, to) {
				t.Errorf("%s asks %q", n, to)
			}
		}
	})
}
