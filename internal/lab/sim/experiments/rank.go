package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"kumo/internal/lab/dice"
	"kumo/internal/lab/sim/queue"
	"kumo/internal/state/rank"
	"kumo/internal/state/rank/breadth"
	"kumo/internal/state/rank/depth"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/opic"
	"kumo/internal/state/rank/pagerank"
	"kumo/internal/state/rank/random"
)

// Rank is Igloo's experiment with URL orders (Ye, Yu and Ma, 2002): how soon a crawl fetches the pages that turn out to
// be important. It uses a crawl's own orders and ranks; the fetching is simulated.
type Rank struct {
	Seed   uint64
	Seeds  int     // pages that each crawl starts from
	Top    int     // number of important pages
	Delay  int     // fetches of other hosts between two of a host, in polite crawls
	Growth float64 // share by which links grow between two passes of PageRank
	Orders []string
}

// RankOfPaper returns the paper's experiment, with likely values where the paper gives none.
func RankOfPaper() Rank {
	return Rank{Seed: 1, Seeds: 20, Top: 500, Delay: 100, Growth: 0.1, Orders: RankOrders()}
}

// RankOrders returns the names of all orders.
func RankOrders() []string {
	return []string{"pagerank", "opic", "indegree", "breadth", "depth", "random"}
}

func (r *Rank) newOrder(name string) (rank.Order, error) {
	switch name {
	case "pagerank":
		return pagerank.New(0), nil
	case "opic":
		return opic.New(), nil
	case "indegree":
		return indegree.New(), nil
	case "breadth":
		return breadth.New(), nil
	case "depth":
		return depth.New(), nil
	case "random":
		return random.New(r.Seed), nil
	}
	return nil, fmt.Errorf("unknown order %q", name)
}

// An Importance is a measure of a page's importance.
type Importance int

// The measures of importance.
const (
	ByPageRank Importance = iota // in the complete graph
	ByInDegree
	importances
)

func (m Importance) String() string { return [...]string{"PageRank", "in-degree"}[m] }

// A RankRun is the result of a crawl.
type RankRun struct {
	Order  string
	Polite bool
	Found  [importances][]int // number of fetches after which each important page was fetched, ascending
	Idle   float64            // share of time in which no host could be fetched from
}

// A GraphSummary describes a graph and the part of it that is reachable from the seeds.
type GraphSummary struct {
	Pages, Links, Hosts int
	Reached, Followed   int // pages and links reachable from the seeds
}

// A RankResult is the result of the experiment.
type RankResult struct {
	GraphSummary
	Passes int // over all links, until the complete graph's PageRank converged
	Runs   []RankRun
}

// After returns the number of fetches until a share of the important pages was fetched.
func (r *RankRun) After(m Importance, share float64) int {
	return r.Found[m][max(0, int(share*float64(len(r.Found[m]))+0.9999)-1)]
}

// At returns the share of the important pages fetched after a number of fetches.
func (r *RankRun) At(m Importance, fetches int) float64 {
	n, _ := slices.BinarySearch(r.Found[m], fetches+1)
	return float64(n) / float64(len(r.Found[m]))
}

// Area returns the area under the curve of the share found over the share fetched. It is 1 if the important pages come
// first.
func (r *RankRun) Area(m Importance, pages int) float64 {
	sum := 0
	for _, at := range r.Found[m] {
		sum += pages - at
	}
	return float64(sum) / float64(pages) / float64(len(r.Found[m]))
}

var errFewPages = errors.New("too few pages are reachable from the seeds: choose others (--seed) or more (--seeds)")

// Run makes all crawls. progress receives the number of finished crawls and of all.
func (r *Rank) Run(ctx context.Context, g *Graph, progress func(done, of int)) (*RankResult, error) {
	ground, seeds, reached, err := r.explore(g)
	if err != nil {
		return nil, err
	}
	res := &RankResult{GraphSummary: ground}
	var top [importances][]rank.ID
	if top[ByPageRank], res.Passes, err = r.topByPageRank(ctx, g, reached); err != nil {
		return nil, err
	}
	top[ByInDegree] = r.topByInDegree(g, reached)
	for _, polite := range []bool{false, true} {
		for _, order := range r.Orders {
			if !polite || g.Hosts() > 0 {
				res.Runs = append(res.Runs, RankRun{Order: order, Polite: polite})
			}
		}
	}
	var mu sync.Mutex
	done := 0
	crawls, ctx := errgroup.WithContext(ctx)
	crawls.SetLimit(2) // each takes about 100 bytes per page
	for i := range res.Runs {
		crawls.Go(func() error {
			err := r.crawl(ctx, g, &res.Runs[i], seeds, &top)
			mu.Lock()
			defer mu.Unlock()
			done++
			progress(done, len(res.Runs))
			return err
		})
	}
	return res, crawls.Wait()
}

func (r *Rank) explore(g *Graph) (ground GraphSummary, seeds, reached []rank.ID, err error) {
	seeds = r.seeds(g)
	reached = g.reach(seeds)
	if len(reached) < 2*r.Top {
		err = fmt.Errorf("%w: %d of %d pages, but --top is %d", errFewPages, len(reached), g.Pages(),
			r.Top)
	}
	return GraphSummary{g.Pages(), g.Links(), g.Hosts(), len(reached), g.linksOf(reached)}, seeds, reached, err
}

func (r *Rank) crawl(ctx context.Context, g *Graph, run *RankRun, seeds []rank.ID, top *[importances][]rank.ID) error {
	order, err := r.newOrder(run.Order)
	if err != nil {
		return err
	}
	important := make([]uint8, g.Pages()) // a bit per measure
	for m := range top {
		for _, u := range top[m] {
			important[u] |= 1 << m
		}
	}
	var queue rankQueue = &oneQueue{}
	var polite *politeQueue
	if run.Polite {
		polite = newPoliteQueue(g, r.Delay)
		queue = polite
	}
	n := 0
	err = newRankCrawl(g, order, queue, r.Growth).run(ctx, seeds, func(u rank.ID) {
		n++
		for m := range run.Found {
			if important[u]>>m&1 == 1 {
				run.Found[m] = append(run.Found[m], n)
			}
		}
	})
	if polite != nil && polite.now > 0 {
		run.Idle = float64(polite.idle) / float64(polite.now)
	}
	return err
}

// seeds draws pages with links: root pages of hosts, if hosts are known.
func (r *Rank) seeds(g *Graph) []rank.ID {
	var can []rank.ID
	met := make([]bool, g.Hosts())
	for u := range g.Pages() {
		if len(g.out(rank.ID(u))) == 0 {
			continue
		}
		if g.hosts != nil {
			if met[g.hosts[u]] {
				continue
			}
			met[g.hosts[u]] = true
		}
		can = append(can, rank.ID(u))
	}
	d := dice.Dice(r.Seed)
	n := min(r.Seeds, len(can))
	for i := range n {
		k := i + below(&d, len(can)-i)
		can[i], can[k] = can[k], can[i]
	}
	return can[:n]
}

func (g *Graph) reach(seeds []rank.ID) (all []rank.ID) {
	met := make([]bool, g.Pages())
	meet := func(u rank.ID) {
		if !met[u] {
			met[u] = true
			all = append(all, u)
		}
	}
	for _, u := range seeds {
		meet(u)
	}
	for i := 0; i < len(all); i++ {
		for _, to := range g.out(all[i]) {
			meet(to)
		}
	}
	return all
}

// minChange is the relative change between two passes below which PageRank has converged.
const minChange = 1e-5

// topByPageRank returns the pages with the highest PageRank in the graph of all reached pages.
func (r *Rank) topByPageRank(ctx context.Context, g *Graph, reached []rank.ID) (top []rank.ID, passes int, err error) {
	o := pagerank.New(0)
	o.Grow(g.Pages())
	passes, err = iterate(ctx, o, g, reached, reached)
	if err != nil {
		return nil, 0, err
	}
	return r.top(reached, func(u rank.ID) float64 { return o.Importance(u, 0) }), passes, nil
}

// iterate makes passes over the links of pages until the ranks of urls converge.
func iterate(ctx context.Context, o *pagerank.Order, g *Graph, pages, urls []rank.ID) (passes int, err error) {
	for change := 1.0; change > minChange; passes++ {
		if err := passOver(ctx, o, pages, g.page, nil); err != nil {
			return 0, err
		}
		diff, sum := 0.0, 0.0
		for _, u := range urls {
			now := o.Importance(u, 0)
			diff, sum = diff+max(now-o.PreviousImportance(u), o.PreviousImportance(u)-now), sum+now
		}
		change = diff / sum
	}
	return passes, nil
}

func (r *Rank) topByInDegree(g *Graph, reached []rank.ID) []rank.ID {
	in := make([]int32, g.Pages())
	for _, u := range reached {
		for _, to := range g.out(u) {
			in[to]++
		}
	}
	return r.top(reached, func(u rank.ID) float64 { return float64(in[u]) })
}

// top returns the most important pages. Of equally important ones it prefers those reached first.
func (r *Rank) top(reached []rank.ID, importance func(rank.ID) float64) []rank.ID {
	var best queue.Heap[ranked] // the least important first
	for i, u := range reached {
		x := ranked{importance(u), i}
		if len(best) < r.Top {
			best.Push(x)
		} else if best[0].Before(x) {
			best.Pop()
			best.Push(x)
		}
	}
	top := make([]rank.ID, len(best))
	for i := range slices.Backward(top) {
		top[i] = reached[best.Pop().at]
	}
	return top
}

type ranked struct {
	importance float64
	at         int
}

func (a ranked) Before(b ranked) bool {
	return a.importance < b.importance || a.importance == b.importance && a.at > b.at
}
