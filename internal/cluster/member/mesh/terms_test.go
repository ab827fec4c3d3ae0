package mesh

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/varint"
	"kumo/internal/cluster/strategy"
)

// newTestTerms returns the terms of a node by the paper's method, and a list of the terms that were applied.
func newTestTerms(b *bench, own Terms) (t *terms, applied *[]Terms) {
	own.Strategy = StrategyPaper
	applied = &[]Terms{}
	t = newTerms(b.core, b.place, own, AgreedTerms{})
	t.apply = func(t Terms) { *applied = append(*applied, t) }
	return t, applied
}

// talk passes the messages that nodes have sent to each other, until there are no more. It returns the other actions.
func talk(b *bench, nodes map[string]*terms) (rest []Action) {
	for range 10 {
		for name, n := range nodes {
			all := n.core.out
			n.core.out = nil
			for _, a := range all {
				m, is := a.(Send)
				if !is {
					rest = append(rest, a)
					continue
				}
				r := varint.Reader{Rest: m.Data[1:]}
				if to := nodes[string(m.To)]; to != nil {
					if err := to.receive(n.core.self, &r); err != nil {
						b.t.Errorf("%s: %v", name, err)
					}
				}
			}
		}
	}
	return rest
}

// couple returns the terms of two nodes that know each other: the first has founded the crawl.
func couple(t *testing.T, first, second Terms) (b *bench, nodes map[string]*terms, applied *[]Terms) {
	b = newBench(t, "other~1")
	founder, _ := newTestTerms(b, first)
	founder.found()
	o := newBench(t, benchSelf)
	o.core.self, o.core.now = "other~1", b.core.now
	o.place.overlay = everybody{"other~1", []strategy.Node{benchSelf, "other~1"}}
	joiner, applied := newTestTerms(o, second)
	return b, map[string]*terms{string(benchSelf): founder, "other~1": joiner}, applied
}

func TestANodeThatJoinsReceivesTheTerms(t *testing.T) {
	b, nodes, applied := couple(t, Terms{Block: 7, Interval: time.Minute}, Terms{})
	joiner := nodes["other~1"]
	b.core.now = b.core.now.Add(20 * time.Second)
	joiner.core.now = b.core.now
	joiner.seek()
	talk(b, nodes)
	b.want("applied", *applied, []Terms{{StrategyPaper, 7, time.Minute}})
	b.want("next update", joiner.next.Sub(joiner.core.now), 40*time.Second)
	b.want("agreed since", joiner.agreed.Since, nodes[string(benchSelf)].agreed.Since)
}

func TestContradictingTermsAreRefused(t *testing.T) {
	for _, second := range []Terms{{Block: 8}, {Interval: time.Hour}} {
		b, nodes, applied := couple(t, Terms{Block: 7, Interval: time.Minute}, second)
		nodes["other~1"].seek()
		refused := 0
		for _, a := range talk(b, nodes) {
			if r, is := a.(TermsRefused); is {
				refused++
				t.Log(r.Err)
			}
		}
		if refused != 1 || len(*applied) != 0 {
			t.Errorf("%+v: refused %d times, and applied %+v", second, refused, *applied)
		}
	}
	b, nodes, _ := couple(t, Terms{}, Terms{})
	nodes["other~1"].own.Strategy = Strategy
	nodes["other~1"].start()
	b.core.now = b.core.now.Add(time.Minute) // the founder's terms are not older, but its name sorts after the other's
	nodes[string(benchSelf)].agreed.Since = nodes["other~1"].agreed.Since.Add(-time.Hour)
	nodes[string(benchSelf)].sendUnasked("other~1")
	refused := 0
	for _, a := range talk(b, nodes) {
		if _, is := a.(TermsRefused); is {
			refused++
		}
	}
	b.want("nodes that refuse another strategy", refused, 1)
}

// Two nodes that have each founded a crawl agree on the older terms.
func TestOlderTermsHold(t *testing.T) {
	b, nodes, _ := couple(t, Terms{}, Terms{})
	founder, late := nodes[string(benchSelf)], nodes["other~1"]
	founder.agreed.Block = 7
	late.core.now = late.core.now.Add(time.Minute)
	b.core.now = late.core.now
	late.found()
	talk(b, nodes)
	b.want("terms", late.agreed.Terms, founder.agreed.Terms)
	b.want("block", late.agreed.Block, 7)
}

// A node that has run for a minute keeps its terms. One with older terms, from an old folder, ends or adopts the
// crawl's terms.
func TestMembersKeepTheirTerms(t *testing.T) {
	for _, own := range []Terms{{Block: 11}, {}} {
		b, nodes, _ := couple(t, Terms{Block: 7, Interval: time.Minute}, own)
		var log bytes.Buffer
		b.core.log = slog.New(slog.NewTextHandler(&log, nil))
		member, late := nodes[string(benchSelf)], nodes["other~1"]
		b.pass(memberAfter)
		out[Measure](b)
		late.core.now = b.core.now
		late.stored = true
		late.agreed = AgreedTerms{Terms{StrategyPaper, 11, time.Minute}, b.core.now.Add(-1000 * time.Hour)}
		late.start()
		for range 3 {
			late.send(benchSelf, false)
			talk(b, nodes)
			b.pass(askTerms)
			late.core.now = b.core.now
		}
		late.core.now = late.core.now.Add(decideAfter)
		late.core.timers.fire(late.core.now)
		b.want("member", fmt.Sprint(member.agreed.Block, member.refused), "7 false")
		b.want("warnings", strings.Count(log.String(), "other terms"), 1)
		if own.Block == 0 {
			b.want("late node", fmt.Sprint(late.agreed.Block, late.refused), "7 false")
			b.want("its next update", late.next, member.next)
		} else {
			b.want("late node", fmt.Sprint(late.agreed.Block, late.refused), "11 true")
		}
	}
}

// A restarted node is ended by contradicting terms only if most of its neighbors have them.
func TestFewNodesCannotEndARestartedOne(t *testing.T) {
	for _, c := range []struct {
		others  []strategy.Node
		refused bool
	}{{[]strategy.Node{"a~1", "x~1", "y~1", "z~1"}, false}, {[]strategy.Node{"a~1", "b~1"}, true}} {
		b := newBench(t, "a~1", "b~1", "c~1")
		own := Terms{StrategyPaper, 7, time.Minute}
		s, _ := newTestTerms(b, own)
		s.agreed, s.stored = AgreedTerms{own, b.core.now.Add(-90 * time.Second)}, true
		s.start()
		b.want("next update", s.next.Sub(b.core.now), 30*time.Second)
		for _, n := range c.others {
			s.compare(n, Terms{Strategy: Strategy}, 1000*time.Hour, 0)
		}
		b.want("refused at once", s.refused, false)
		b.pass(decideAfter)
		b.want(fmt.Sprintf("refused, of others %v", c.others), s.refused, c.refused)
	}
}

// A node with an old folder of another crawl comes to a young one by mistake. It ends, and the young nodes continue.
// Where most neighbors have other terms, the young node is the one in the wrong crawl.
func TestAnOldFolderDoesNotEndAYoungCrawl(t *testing.T) {
	for _, c := range []struct {
		others  []strategy.Node
		leave   bool // the others have left before the node decides
		refused bool
	}{
		{[]strategy.Node{"a~1"}, false, false},
		{[]strategy.Node{"a~1", "b~1"}, true, false},
		{[]strategy.Node{"a~1", "b~1"}, false, true},
	} {
		b := newBench(t, "a~1", "b~1", "c~1")
		s := newTerms(b.core, b.place, Terms{Strategy: Strategy}, AgreedTerms{})
		s.start()
		b.pass(2 * firstAge)
		for _, n := range c.others {
			s.compare(n, Terms{StrategyPaper, 7, time.Minute}, 1000*time.Hour, 0)
		}
		b.want("refused at once", s.refused, false)
		b.pass(decideAfter)
		if c.leave {
			b.place.overlay = everybody{benchSelf, []strategy.Node{benchSelf, "c~1"}}
		}
		b.pass(foundAfter)
		b.want(fmt.Sprintf("refused, %v (left: %v)", c.others, c.leave), s.refused, c.refused)
	}
	b := newBench(t, "a~1")
	s := newTerms(b.core, b.place, Terms{Strategy: Strategy}, AgreedTerms{})
	s.start()
	s.compare("a~1", Terms{StrategyPaper, 7, time.Minute}, time.Hour, 0)
	b.want("a newcomer refuses at once", s.refused, true)
}

// A node decides about other terms after it has become a member: it considers all that it has received until then.
func TestADecisionConsidersTheLastTerms(t *testing.T) {
	b := newBench(t, "a~1", "b~1", "c~1")
	s := newTerms(b.core, b.place, Terms{Strategy: Strategy}, AgreedTerms{})
	s.start()
	other := Terms{StrategyPaper, 7, time.Minute}
	b.pass(memberAfter - firstAge)
	s.compare("a~1", other, 1000*time.Hour, 0)
	b.pass(2 * firstAge)
	s.compare("b~1", other, 1000*time.Hour, 0)
	b.pass(foundAfter)
	b.want("refused", s.refused, true)
	late := newTerms(b.core, b.place, Terms{Strategy: Strategy}, AgreedTerms{})
	late.start()
	b.pass(memberAfter)
	late.compare("a~1", other, 1000*time.Hour, 0)
	b.want("decides as a member", late.others != nil, false)
}

func TestUpdatesRepeatAtTheAgreedTimes(t *testing.T) {
	b := newBench(t)
	s, _ := newTestTerms(b, Terms{Interval: time.Minute})
	s.found()
	b.core.out = nil
	b.pass(3*time.Minute + time.Second)
	b.want("updates", len(out[Measure](b)), 3)
	b.core.now = b.core.now.Add(10*time.Minute - 500*time.Millisecond) // suspended
	b.core.timers.fire(b.core.now)
	b.want("updates after a suspension", len(out[Measure](b)), 1)
	b.want("next update", s.next.Sub(s.agreed.Since), 14*time.Minute)
}

func TestInvalidTermsAreRefused(t *testing.T) {
	b := newBench(t, "a~1")
	s, applied := newTestTerms(b, Terms{})
	for _, bad := range []Terms{{StrategyPaper, 0, time.Minute}, {StrategyPaper, 5, 0}, {StrategyPaper, 5, 48 * time.Hour},
		{StrategyPaper, MaxBlock + 1, time.Minute}} {
		w := varint.Writer{}
		w.Bool(false)
		w.Bool(true)
		w.String(bad.Strategy)
		w.Uint(uint64(bad.Block))
		w.Uint(uint64(bad.Interval / time.Millisecond))
		w.Uint(1)
		w.Uint(1)
		r := varint.Reader{Rest: w}
		if err := s.receive("a~1", &r); err == nil {
			t.Errorf("%+v are accepted", bad)
		}
	}
	b.want("applied", len(*applied), 0)
}
