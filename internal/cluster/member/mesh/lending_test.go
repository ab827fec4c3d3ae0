package mesh

import (
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// newTestPaper returns the paper's policy, with lending, for a bench.
func newTestPaper(b *bench, hosts balancedHosts, of lent) *paperBalance {
	l := &lending{core: b.core, place: b.place, mail: b, lookups: b, hosts: hosts, lent: of, former: newFormer(b.core),
		pending: func(string) bool { return false }, guests: map[string]*guest{}, lenders: map[strategy.Node]int64{}}
	s := &paperBalance{core: b.core, place: b.place, mail: b, lending: l, cfg: BalanceConfig{Area: 5}, block: 20}
	l.admit = s.admit
	return s
}

// fakeBalanced stand in for the hosts that this node fetches.
type fakeBalanced struct {
	lent map[string]strategy.Node
	kept []string // not passed on
}

func (f *fakeBalanced) holds(string) bool { return false }
func (f *fakeBalanced) lendable(host string) func(strategy.Node) {
	return func(to strategy.Node) { f.lent[host] = to }
}
func (f *fakeBalanced) releaseIfMoved(string)               {}
func (f *fakeBalanced) announce(string, strategy.Node) bool { return false }
func (f *fakeBalanced) pass(host string, _ strategy.Node, ok bool) {
	if !ok {
		f.kept = append(f.kept, host)
	}
}

func TestPaperBalanceLendsHostsToALightNode(t *testing.T) {
	b := newBench(t, "a~1")
	hosts := &fakeBalanced{lent: map[string]strategy.Node{}}
	s := newTestPaper(b, hosts, lent{"l.test": "gone~1"})
	s.loaded(Load{Waiting: 200, Busy: true})
	b.want("level", s.load.Level, 5)
	s.lending.checkLent()
	b.answer(itemGuest, nil)
	b.want("lent to a node that does not answer", len(s.lending.lent), 0)
	b.want("a node that may not have stopped", s.lending.former.of("l.test"), "gone~1")
	b.answer(itemLevel, &reply{code: replyYes, number: -6})
	b.answer(itemReserve, &reply{code: replyYes, number: 3})
	b.want("spares", out[Spare](b), []Spare{{To: "a~1", URLs: 60}})
	s.spared(Spared{To: "a~1", Hosts: []string{"x.test", "y.test"}})
	b.posts[0].done("a~1", yes)
	b.posts[1].done("a~1", nil)
	b.want("lent", hosts.lent, map[string]strategy.Node{"x.test": "a~1"})
}

func TestPaperBalanceReturnsIdleGuests(t *testing.T) {
	b := newBench(t, "a~1")
	s := newTestPaper(b, &fakeBalanced{}, lent{})
	s.loaded(Load{})
	host := b.host(func(h string) bool { return !b.place.isTarget(h) })
	codes := []byte{s.lending.acceptGuest("a~1", item{host: host}).code, s.reserve("a~1", item{number: 100}).code,
		s.lending.acceptGuest("a~1", item{host: host}).code}
	b.want("replies", codes, []byte{replyNo, replyYes, replyYes})
	b.want("is this node's", b.place.view.Ours(host), true)
	s.lending.run()
	b.answer(itemLender, &reply{code: replyYes, number: 7})
	b.pass(guestIdle - time.Second)
	b.want("returned", b.answer(itemReturn, yes), []strategy.Node(nil))
	b.pass(lendingEvery + time.Second)
	b.want("returned to", b.answer(itemReturn, yes), []strategy.Node{"a~1"})
	b.want("is this node's", b.place.view.Ours(host), false)
}

// A light node cannot have a heavy one give more than its excess.
func TestPaperBalanceGivesAtMostItsExcess(t *testing.T) {
	b := newBench(t, "a~1")
	s := newTestPaper(b, &fakeBalanced{}, lent{})
	s.loaded(Load{Waiting: 200, Busy: true})
	b.answer(itemLevel, &reply{code: replyYes, number: -6})
	b.answer(itemReserve, &reply{code: replyYes, number: 1 << 60})
	b.want("spares", out[Spare](b), []Spare{{To: "a~1", URLs: 100}})
}

// A loan ends at once when its guest dies, or leaves, or returns the host.
func TestLoansEndWithTheGuest(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	hosts := &fakeBalanced{}
	s := newTestTime(b, hosts)
	l := s.lending
	l.lent["x.test"], l.lent["y.test"], l.lent["z.test"] = "a~1", "b~1", "a~1"
	l.gone("a~1")
	b.want("lent", l.lent, lent{"y.test": "b~1"})
	b.want("not passed on", hosts.kept, []string{"x.test", "z.test"})
	b.want("returned by another", l.returned("a~1", item{host: "y.test"}).code, replyYes)
	b.want("lent", len(l.lent), 1)
	l.returned("b~1", item{host: "y.test"})
	b.want("lent", len(l.lent), 0)
	b.want("a node that may not have stopped", l.former.of("y.test"), "b~1")

	s.requested["a~1"] = allowance{5, b.core.now.Add(time.Minute)}
	guest := b.host(func(h string) bool { return !b.place.isTarget(h) })
	l.acceptGuest("a~1", item{host: guest, number: 5})
	l.leave()
	b.want("returned to", b.answer(itemReturn, yes), []strategy.Node{"a~1"})

	m, now := hostileTo(Config{}, nil)
	m.lending.lent["x.test"] = "other~1"
	m.Step(now, []Event{NodeGone{Node: "other~1"}}, nil)
	b.want("lent to a node that has died", len(m.lending.lent), 0)
}
