package budget

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy"
)

// A simNode fetches pages, and reports with a delay.
type simNode struct {
	used, inFlight int64
	ceiling        int64
	round          uint64
	pending        int64 // URLs
	speed          int64 // pages a step
	blocked        int   // steps in which it fetches nothing
	reported       Node
	gone           bool
}

func (n *simNode) report() Node {
	return Node{Report: Report{n.used, n.ceiling, n.round}, Busy: n.pending+n.inFlight > 0, Rate: float64(n.speed)}
}

func (n *simNode) obey(s Share) {
	if s.Round > n.round {
		n.ceiling, n.round = max(s.Grant, n.used+n.inFlight), s.Round
	}
}

// step ends requests in progress, some of them without a page, and begins new ones.
func (n *simNode) step(rng *rand.Rand) (fetched int64) {
	for ; n.inFlight > 0; n.inFlight-- {
		if rng.IntN(10) > 0 {
			n.used++
			fetched++
		} else {
			n.pending++
		}
	}
	if n.blocked > 0 {
		n.blocked--
		return fetched
	}
	for n.inFlight < n.speed && n.pending > 0 && n.used+n.inFlight < n.ceiling {
		n.pending--
		n.inFlight++
	}
	return fetched
}

// A world is a crawl whose first node divides the limit. Messages are late, nodes come, pause, run out of URLs, and end
// with or without a final number.
type world struct {
	rng     *rand.Rand
	nodes   map[strategy.Node]*simNode
	stored  *Budget
	fetched int64
	still   map[strategy.Node]stillness
	goneFor map[strategy.Node]int
}

type stillness struct {
	used  int64
	steps int
}

func (w *world) names() []strategy.Node { return slices.Sorted(maps.Keys(w.nodes)) }

func (w *world) divide(limit int64) (used int64) {
	b := w.stored.Clone()
	nodes := map[strategy.Node]Node{}
	for name, n := range w.nodes {
		if n.gone {
			w.goneFor[name]++
			continue
		}
		r := n.reported
		was := w.still[name]
		if was.used != r.Used || r.Used >= r.Ceiling {
			was = stillness{used: r.Used}
		}
		was.steps++
		w.still[name] = was
		r.Stalled = was.steps > 5
		nodes[name] = r
	}
	b.SetUsed(nodes, func(n strategy.Node) bool { return !w.nodes[n].gone }, func(n strategy.Node) bool { return w.goneFor[n] > 3 })
	b.Divide(limit, nodes)
	w.stored = b
	return b.Used()
}

// The nodes never fetch more than the limit, and reach it if there are enough URLs.
func TestNodesKeepTheLimit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 1))
			limit := 1 + rng.Int64N(3000)
			w := &world{rng: rng, nodes: map[strategy.Node]*simNode{}, still: map[strategy.Node]stillness{},
				goneFor: map[strategy.Node]int{}, stored: New(0, nil)}
			count := 1 + rng.IntN(6)
			add := func() {
				n := &simNode{speed: 1 + rng.Int64N(40), pending: rng.Int64N(2) * rng.Int64N(2*limit)}
				w.nodes[strategy.Node(fmt.Sprintf("n%d", len(w.nodes)))] = n
			}
			for range count {
				add()
			}
			w.nodes["n0"].pending = 20 * limit // more than failures and lost nodes can use up
			lost := int64(0)                   // pages of dead nodes that no report has
			for step := range 4000 {
				if w.divide(limit) >= limit {
					if w.fetched > limit+lost {
						t.Fatalf("%d pages, and %d unreported ones of dead nodes, at a limit of %d", w.fetched, lost, limit)
					}
					return
				}
				for _, name := range w.names() {
					n := w.nodes[name]
					if n.gone {
						continue
					}
					w.fetched += n.step(rng)
					if rng.IntN(3) > 0 {
						n.reported = n.report()
					}
					if rng.IntN(40) == 0 {
						n.blocked = rng.IntN(15)
					}
				}
				for _, name := range w.names() {
					n := w.nodes[name]
					if s, is := w.stored.Shares[name]; is && !n.gone && rng.IntN(3) > 0 {
						n.obey(s)
					}
				}
				switch rng.IntN(60) {
				case 0:
					if len(w.nodes) < 12 {
						add()
					}
				case 1:
					for _, name := range w.names() {
						n := w.nodes[name]
						if name == "n0" || n.gone {
							continue
						}
						n.gone = true
						if rng.IntN(2) == 0 {
							w.stored.SetFinal(name, n.used)
						} else {
							lost += n.used - w.stored.Shares[name].Used
						}
						break
					}
				}
				if w.fetched > limit+lost {
					t.Fatalf("step %d: %d pages, and %d unreported ones of dead nodes, at a limit of %d", step, w.fetched, lost, limit)
				}
			}
			t.Fatalf("only %d of %d pages: %+v", w.fetched, limit, w.stored)
		})
	}
}

// A lower limit takes grants back, a higher one extends them.
func TestTheLimitChanges(t *testing.T) {
	t.Parallel()
	nodes := map[strategy.Node]Node{"a": {Busy: true}, "b": {Busy: true}}
	b := New(100, nodes)
	all := func(strategy.Node) bool { return true }
	divide := func(limit int64) {
		for name, n := range nodes {
			s := b.Shares[name]
			n.Ceiling, n.Round = max(s.Grant, n.Used), s.Round
			nodes[name] = n
		}
		b.SetUsed(nodes, all, all)
		b.Divide(limit, nodes)
	}
	divide(100_100)
	if a := b.Shares["a"].Grant; a != 25_000 {
		t.Errorf("first grant %d", a)
	}
	nodes["a"] = Node{Report: Report{Used: 24_000}, Busy: true}
	divide(50_100)
	if sum := b.charged(); b.Used() != 24_100 || sum > 50_100 {
		t.Errorf("%d used and %d charged after the limit was lowered: %+v", b.Used(), sum, b)
	}
	divide(24_100)
	divide(24_100)
	if sum := b.charged(); b.Shares["a"].Grant > 25_000 || sum < 24_100 {
		t.Errorf("%d charged at the limit: %+v", sum, b)
	}
	divide(200_000)
	if a := b.Shares["a"].Grant; a <= 25_000 {
		t.Errorf("no more for a at a higher limit: %+v", b)
	}
	if parsed, err := Parse([]byte(`{"limit":1,"gone":2,"round":3}`)); err != nil || parsed.Used() != 2 ||
		parsed.Clone().Shares == nil {
		t.Errorf("%+v, %v", parsed, err)
	}
	if _, err := Parse([]byte("x")); err == nil {
		t.Error("no error for a damaged budget")
	}
}
