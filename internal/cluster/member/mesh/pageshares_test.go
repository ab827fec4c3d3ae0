package mesh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
)

// A limitedEngine is an engine that fetches pages within its share of the crawl's limit.
type limitedEngine struct {
	share   int64
	flying  int64 // pages in progress
	most    int64 // of them at once
	waiting int64 // pending URLs
	slow    time.Duration
	last    time.Time // when a page last began
}

func (e *limitedEngine) config(n *worldNode) PageConfig {
	if e == nil {
		return PageConfig{}
	}
	return PageConfig{
		Use: func() (PageUse, bool) {
			return PageUse{Done: n.pages, Used: n.pages + e.flying, Busy: e.waiting+e.flying > 0}, true
		},
		SetShare: func(pages int64) int64 {
			if e.share = pages; pages >= 0 {
				e.share = max(pages, n.pages+e.flying)
			}
			return e.share
		}}
}

// fetch ends some pages in progress, and begins others.
func (e *limitedEngine) fetch(n *worldNode, now time.Time, rng *rand.Rand) {
	for range e.flying {
		if rng.IntN(4) > 0 {
			continue
		}
		if e.flying--; rng.IntN(10) == 0 { // no answer: the URL is tried again
			e.waiting++
		} else {
			n.pages++
		}
	}
	for e.waiting > 0 && e.flying < e.most && (e.share < 0 || n.pages+e.flying < e.share) && now.Sub(e.last) >= e.slow {
		e.waiting--
		e.flying++
		e.last = now
	}
}

// crawl has all live nodes fetch for a time, or until the limit is reached. They learn of the limit at the start.
func (w *world) crawl(d time.Duration, limit int64, rng *rand.Rand) (sum int64) {
	for _, name := range w.live {
		w.tell(w.nodes[name], PageLimit{limit})
	}
	for end := w.now.Add(d); w.now.Before(end) && len(w.limits) == 0; {
		w.pass(100 * time.Millisecond)
		for _, name := range w.live {
			n := w.nodes[name]
			n.limit.fetch(n, w.now, rng)
		}
	}
	return w.allPages()
}

func (w *world) allPages() (sum int64) {
	for _, n := range w.nodes {
		sum += n.pages
	}
	return sum
}

func limitedWorld(t *testing.T, nodes int, rng *rand.Rand) *world {
	w := newWorld(t, nodes)
	for _, name := range w.live {
		w.nodes[name].limit = &limitedEngine{share: -1, most: 1 + rng.Int64N(20), waiting: 1000}
		w.start(name)
	}
	w.tell(w.node(0), Change{Data: []byte("has seeds")})
	w.pass(time.Second)
	return w
}

// All nodes together fetch as many pages as the limit, exactly, whether they are fast, slow or without work.
func TestPageLimitIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, seed))
			nodes := 1 + rng.IntN(12)
			limit := []int64{1, 5, 100, 3000}[rng.IntN(4)]
			w := limitedWorld(t, nodes, rng)
			for i := range nodes - 1 {
				switch rng.IntN(4) {
				case 0:
					w.node(i).limit.waiting = rng.Int64N(5)
				case 1:
					w.node(i).limit.slow = time.Duration(rng.IntN(30)) * time.Second
				}
			}
			w.node(nodes - 1).limit.waiting = 10_000
			began := w.now
			sum := w.crawl(20*time.Minute, limit, rng)
			flying := int64(0)
			for _, n := range w.nodes {
				flying += n.limit.flying
			}
			if sum != limit || flying != 0 || !slices.Equal(w.limits, []int64{limit}) {
				t.Errorf("%d nodes, limit %d: %d pages, %d in progress, and the limit was reached at %v", nodes, limit, sum,
					flying, w.limits)
			}
			t.Logf("%d nodes, limit %d: after %v", nodes, limit, w.now.Sub(began))
		})
	}
}

// Nodes die, come, leave and return, and messages are lost. The sum may exceed the limit by what dead nodes had in
// progress, and the crawl reaches the limit.
func TestPageLimitHoldsWhileNodesComeAndGo(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(2, seed))
			const nodes, limit = 8, 12_000
			w := limitedWorld(t, nodes, rng)
			w.cut = func(strategy.Node, strategy.Node) bool { return rng.IntN(50) == 0 }
			slack := int64(0)
			var away []strategy.Node
			for range 8 {
				w.crawl(time.Duration(rng.IntN(5000))*time.Millisecond, limit, rng)
				n := w.nodes[w.live[rng.IntN(len(w.live))]]
				switch {
				case len(w.limits) > 0:
				case rng.IntN(2) == 0 && len(away) > 0:
					name := away[0]
					away = away[1:]
					back := w.nodes[name].limit
					back.share, back.waiting = -1, 1000
					w.come(name)
				case len(w.live) > 3: // it dies, and the others notice that later
					slack += n.limit.most
					n.m, n.limit.flying, n.limit.waiting = nil, 0, 0
					away = append(away, n.name)
					w.crawl(time.Duration(rng.IntN(5000))*time.Millisecond, limit, rng)
					w.gone(n.name, false)
				}
			}
			for _, name := range w.live {
				w.nodes[name].limit.waiting += limit
			}
			sum := w.crawl(20*time.Minute, limit, rng)
			if len(w.limits) == 0 || sum > limit+slack || sum < limit {
				t.Errorf("limit %d: %d pages, and the limit was reached at %v (slack %d)", limit, sum, w.limits, slack)
			}
			t.Logf("%d pages", sum)
		})
	}
}

// The divider changes while its grants are in transit: no grant takes effect that a later division has not counted.
func TestLateGrantsAreRefused(t *testing.T) {
	w := limitedWorld(t, 2, rand.New(rand.NewPCG(3, 3)))
	n := w.node(0)
	w.tell(n, PageLimit{100})
	s := n.m.pageShares
	d := division{known: true, active: 50}
	if got := s.tally(&d, gatherKey{"a~1", 1}); got.Need != 50 || got.Ceiling != 0 {
		t.Fatalf("%+v", got)
	}
	s.tally(&d, gatherKey{"b~1", 2})
	if s.accept(gatherKey{"a~1", 1}, 50); s.ceiling != 0 {
		t.Error("a grant of an earlier division is accepted")
	}
	s.accept(gatherKey{"b~1", 2}, 30)
	s.accept(gatherKey{"b~1", 2}, 30)
	if s.ceiling != 30 {
		t.Errorf("a grant of 30 pages that comes twice raises the ceiling to %d", s.ceiling)
	}
	w.tell(n, PageLimit{})
	if n.limit.share != -1 {
		t.Errorf("without a limit there is a share of %d pages", n.limit.share)
	}
}

// The limit is reached when two counts in a row say so: complete ones, by the same divider, with the same limit.
func TestTheLimitIsReachedTwiceInARow(t *testing.T) {
	for what, between := range map[string]func(b *bench, s *pageShares, count func(done int64, missing int)){
		"":                    nil,
		"an incomplete count": func(_ *bench, _ *pageShares, count func(int64, int)) { count(100, 1) },
		"a smaller count":     func(_ *bench, _ *pageShares, count func(int64, int)) { count(99, 0) },
		"a change of the limit": func(_ *bench, s *pageShares, _ func(int64, int)) {
			s.setLimit(120)
			s.setLimit(100)
		},
		"another divider": func(_ *bench, s *pageShares, count func(int64, int)) {
			here := s.isHere
			s.isHere = func() bool { return false }
			s.run()
			s.isHere = here
		},
	} {
		b := newBench(t, "a~1")
		s := &pageShares{core: b.core, place: b.place, isHere: func() bool { return true }, cfg: PageConfig{
			Use:      func() (PageUse, bool) { return PageUse{}, true },
			SetShare: func(pages int64) int64 { return pages }}}
		count := func(done int64, missing int) {
			s.gather = func(_ division, f func(*gathering)) {
				f(&gathering{sum: Tally{Nodes: 2, Missing: missing, Pages: PageTally{Nodes: 2, Done: done}}})
			}
			s.total = 0
			s.divide()
		}
		s.setLimit(100)
		count(100, 0)
		if between != nil {
			between(b, s, count)
			count(100, 0)
			b.want("the limit is reached after "+what, len(out[LimitReached](b)), 0)
		}
		count(100, 0)
		b.want("the limit is reached at last after "+what, len(out[LimitReached](b)), 1)
	}
}

// A testDivider divides a limit among nodes. It counts them in any order, and its grants come in any order, or not at
// all.
type testDivider struct {
	name    strategy.Node
	last    uint64 // number of gatherings
	began   time.Time
	order   []int // nodes in the order of their counts
	counted int
	sum     PageTally
	needs   []int64 // of the nodes in that order
	grants  []testGrant
}

type testGrant struct {
	node  int
	key   gatherKey
	pages int64
}

// step counts a node, or delivers a grant.
func (d *testDivider) step(nodes []*pageShares, limit int64, now time.Time, rng *rand.Rand) {
	if n := len(d.grants); n > 0 && rng.IntN(3) > 0 {
		g := d.grants[n-1]
		if d.grants = d.grants[:n-1]; rng.IntN(10) > 0 {
			nodes[g.node].accept(g.key, g.pages)
		}
		return
	}
	if d.counted == len(d.order) || now.Sub(d.began) > gatherFor {
		d.last++
		d.began, d.order, d.counted, d.sum, d.needs = now, rng.Perm(len(nodes)), 0, PageTally{}, nil
	}
	key := gatherKey{d.name, d.last}
	t := nodes[d.order[d.counted]].tally(&division{divider: d.name, known: true, active: 1 + rng.Int64N(limit)}, key)
	d.sum.add(t)
	d.needs = append(d.needs, t.Need)
	if d.counted++; d.counted < len(d.order) || d.sum.Bound > 0 || d.sum.Unlimited > 0 {
		return
	}
	for i, n := range splitGrant(limit-d.sum.Ceiling, d.needs, 0) {
		d.grants = append(d.grants, testGrant{d.order[i], key, n})
	}
	rng.Shuffle(len(d.grants), func(i, k int) { d.grants[i], d.grants[k] = d.grants[k], d.grants[i] })
}

// Several nodes divide the limit at once: the ceilings stay within it. When only one is left, it grants all of it.
func TestSeveralDividers(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(4, seed))
		b := newBench(t)
		used := make([]int64, 4)
		var nodes []*pageShares
		for i := range used {
			s := &pageShares{core: b.core, place: b.place, share: func() {}, isHere: func() bool { return false },
				awaits: func() bool { return false },
				cfg: PageConfig{
					Use:      func() (PageUse, bool) { return PageUse{Done: used[i], Used: used[i], Busy: true}, true },
					SetShare: func(pages int64) int64 { return max(pages, used[i]) }}}
			s.setLimit(limit)
			nodes = append(nodes, s)
		}
		dividers := []*testDivider{{name: "a~1"}, {name: "b~1"}, {name: "c~1"}}
		sum := func() (ceilings int64) {
			for _, s := range nodes {
				ceilings += s.ceiling
			}
			return ceilings
		}
		for range 400 {
			b.core.now = b.core.now.Add(time.Duration(rng.Int64N(int64(3 * time.Second))))
			dividers[rng.IntN(len(dividers))].step(nodes, limit, b.core.now, rng)
			if i := rng.IntN(len(used)); used[i] < nodes[i].ceiling && sum() < limit {
				used[i]++
			}
			if got := sum(); got > limit {
				t.Fatalf("seed %d: the nodes may fetch %d pages with a limit of %d", seed, got, limit)
			}
		}
		last := dividers[rng.IntN(len(dividers))]
		for step := 0; sum() < limit; step++ {
			if step == 1000 {
				t.Fatalf("seed %d: %s has granted %d pages of %d", seed, last.name, sum(), limit)
			}
			b.core.now = b.core.now.Add(time.Duration(rng.Int64N(int64(time.Second))))
			last.step(nodes, limit, b.core.now, rng)
		}
	}
}

func TestSplitGrant(t *testing.T) {
	for range 1000 {
		needs := make([]int64, 1+rand.IntN(6))
		sum := int64(0)
		for i := range needs {
			needs[i] = rand.Int64N(1 << rand.IntN(40))
			sum += needs[i]
		}
		pages := rand.Int64N(1 + 2*sum)
		got, given := splitGrant(pages, needs, rand.IntN(len(needs))), int64(0)
		for i, n := range got {
			if given += n; n < 0 || n > needs[i] {
				t.Fatalf("%d of %v: %v", pages, needs, got)
			}
		}
		if given != min(pages, sum) {
			t.Fatalf("%d of %v: %v, %d in all", pages, needs, got, given)
		}
	}
}
