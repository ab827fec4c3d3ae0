package mesh

import (
	"math/rand/v2"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// newTestTime returns the default policy, with lending, for a bench.
func newTestTime(b *bench, hosts balancedHosts) *timeBalance {
	l := &lending{core: b.core, place: b.place, mail: b, lookups: b, hosts: hosts, lent: lent{}, former: newFormer(b.core),
		pending: func(string) bool { return false }, guests: map[string]*guest{}, lenders: map[strategy.Node]int64{}}
	s := newTimeBalance(b.core, b.place, b, b, l, func(string) bool { return false })
	l.admit = s.admit
	return s
}

func loadOf(urls int64, rate float64) Load {
	return Load{Waiting: urls, Rate: rate, Busy: true, Backlog: BacklogOf(urls, nil, rate)}
}

// TestBacklogIsWhatOthersCouldFetch checks that URLs which a delay leaves for later are no backlog.
func TestBacklogIsWhatOthersCouldFetch(t *testing.T) {
	slow := QueuedHost{Pending: 10_000, Each: 500 * time.Millisecond}
	for _, c := range []struct {
		pending  int64
		hosts    []QueuedHost
		rate     float64
		min, max time.Duration
	}{
		{0, nil, 2, 0, 0},
		{600, nil, 2, 300 * time.Second, 300 * time.Second},
		{600, nil, 0, 0, 0}, // the rate is unknown
		{10_000, []QueuedHost{slow}, 20, 0, time.Second},                // 2 requests/s at most, of 20
		{11_000, []QueuedHost{slow}, 20, 55 * time.Second, time.Minute}, // the others, and 2/s of the slow one
		{10_000, []QueuedHost{slow}, 1, 10_000 * time.Second, 10_000 * time.Second},
	} {
		if got := BacklogOf(c.pending, c.hosts, c.rate); got < c.min || got > c.max {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestHungryNodeRequestsHosts follows a request: it goes to the node with the longest backlog, and admits its hosts.
func TestHungryNodeRequestsHosts(t *testing.T) {
	b := newBench(t, "a~1", "b~1", "c~1")
	s := newTestTime(b, &fakeBalanced{})
	s.loaded(loadOf(1000, 20))
	b.want("posted with enough work", len(b.posts), 0)
	s.loaded(loadOf(20, 20))
	longest := b.posts[0].to
	for _, p := range b.posts {
		b.want("query", p.it.kind, itemBacklog)
		r := &reply{code: replyYes, number: 10_000}
		if p.to == longest {
			r.number = 300_000
		}
		p.done(p.to, r)
	}
	request := b.posts[len(b.posts)-1]
	b.want("request", request.it.kind, itemRequest)
	b.want("to", request.to, longest)
	b.want("need", unpackNeed(request.it.number), need{20, time.Second})
	host := b.host(func(h string) bool { return !b.place.isTarget(h) })
	b.want("without a request", s.lending.acceptGuest("x~1", item{host: host, number: 5}).code, replyNo)
	b.want("with a request", s.lending.acceptGuest(longest, item{host: host, number: 200}).code, replyYes)
	b.want("backlog with the host", s.backlog(), 11*time.Second)
	request.done(longest, &reply{code: replyYes, number: 200})
	b.posts = nil
	b.pass(2 * time.Second)
	s.loaded(loadOf(20, 20))
	b.want("posted while hosts are on their way", len(b.posts), 0)
}

// TestFruitlessSearchesBecomeRare: a hungry node that finds no work asks less and less often, until work is offered.
func TestFruitlessSearchesBecomeRare(t *testing.T) {
	b := newBench(t, "a~1", "b~1")
	s := newTestTime(b, &fakeBalanced{})
	searches := 0
	for range 600 {
		s.loaded(loadOf(0, 20))
		if len(b.posts) > 0 {
			searches++
			b.answer(itemBacklog, &reply{code: replyNo})
		}
		b.pass(time.Second)
	}
	if searches < 600/32 || searches > 30 {
		t.Errorf("%d searches in 10 minutes", searches)
	}
	s.offered("a~1", item{})
	b.want("request for offered work", b.answer(itemRequest, &reply{code: replyNo}), []strategy.Node{"a~1"})
}

// TestShareHasBothEndTogether checks how much a node lends, and to whom it offers work later.
func TestShareHasBothEndTogether(t *testing.T) {
	b := newBench(t, "a~1")
	hosts := &fakeBalanced{lent: map[string]strategy.Node{}}
	s := newTestTime(b, hosts)
	var got reply
	answer := func(r reply) { got = r }
	ask := func(n need) { s.request("a~1", item{number: packNeed(n)}, answer) }
	s.loaded(loadOf(660, 2))
	ask(need{20, 0})
	b.want("spares", out[Spare](b), []Spare{{To: "a~1", URLs: 600, AtLeastOne: true}})
	s.spared(Spared{To: "a~1", Hosts: []string{"x.test", "y.test"}, Pending: []int64{400, 190}})
	b.want("reply", got, reply{code: replyYes, number: 590})
	b.want("backlog without them", s.backlog(), 35*time.Second)
	b.answer(itemGive, yes)
	b.want("lent", hosts.lent, map[string]strategy.Node{"x.test": "a~1", "y.test": "a~1"})
	for _, c := range []struct {
		load Load
		need need
	}{
		{loadOf(660, 2), need{20, 330 * time.Second}},        // it would come back
		{loadOf(8, 2), need{20, time.Second}},                // no gain
		{Load{Waiting: 660, Rate: 2}, need{20, time.Second}}, // the hosts' delays are the limit
		{Load{}, need{20, 0}},
	} {
		s.leaving = map[string]transit{}
		s.loaded(c.load)
		if ask(c.need); got.code != replyNo || len(out[Spare](b)) > 0 {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	b.posts = nil
	s.answerBacklog("hungry~1", item{})
	s.loaded(loadOf(660, 2))
	b.want("offers to", b.answer(itemOffer, yes), []strategy.Node{"hungry~1"})
	s.loaded(loadOf(660, 2))
	b.want("offers again", len(b.answer(itemOffer, yes)), 0)
}

// TestSelectTakesAPartOfAllSizes: hosts with few URLs move as well as those with many.
func TestSelectTakesAPartOfAllSizes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		n := 1 + rng.IntN(60)
		hosts, pending, all := make([]string, n), make([]int64, n), int64(0)
		for i, left := 0, int64(1000); i < n; i++ {
			left = 1 + rng.Int64N(left)
			hosts[i], pending[i] = string(rune('a'+i)), left
			all += left
		}
		want := 1 + rng.Int64N(all)
		s := Spare{URLs: want, AtLeastOne: true}.Select(hosts, pending)
		got := int64(0)
		for _, p := range s.Pending {
			got += p
		}
		if len(s.Hosts) != len(s.Pending) || got > want+pending[0]/2+1 && got > 2*want {
			t.Fatalf("%d URLs of %v: %d, %v", want, pending, got, s.Pending)
		}
	}
	s := Spare{URLs: 50, AtLeastOne: true}.Select([]string{"a", "b", "c"}, []int64{500, 300, 90})
	if len(s.Hosts) != 1 || s.Hosts[0] != "c" {
		t.Errorf("%+v: want the smallest host", s)
	}
}

// TestLendersThatRestartLoseTheirLoans: a node releases guests whose target has forgotten the loan.
func TestLendersThatRestartLoseTheirLoans(t *testing.T) {
	for name, last := range map[string]*reply{"restarted": {code: replyYes, number: 9}, "gone": nil} {
		b := newBench(t, "a~1")
		s := newTestTime(b, &fakeBalanced{})
		host := b.host(func(h string) bool { return !b.place.isTarget(h) })
		s.requested["a~1"] = allowance{5, b.core.now.Add(time.Minute)}
		s.lending.acceptGuest("a~1", item{host: host, number: 5})
		b.answer(itemLender, &reply{code: replyYes, number: 7})
		s.lending.run()
		b.answer(itemLender, &reply{code: replyYes, number: 7})
		b.want(name+": guest", b.place.view.Ours(host), true)
		s.lending.run()
		b.answer(itemLender, last)
		b.want(name+": guest at the end", b.place.view.Ours(host), false)
	}
}
