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

// Rank is Igloo's experiment with orders of what waits (Ye, Yu and Ma, 2002): how soon a crawl has the pages that turn
// out to be important. Orders are those of a crawl, and so are the places that they give; fetching is made up.
type Rank struct {
	Seed   uint64
	Seeds  int     // pages from which each crawl begins
	Top    int     // how many pages are important
	Delay  int     // fetches for which a host is left alone after one, where crawls are polite
	Growth float64 // by which share links become more between two passes of PageRank
	Orders []string
}

// RankOfPaper is the paper's experiment, and where it says nothing what seemed most likely.
func RankOfPaper() Rank {
	return Rank{Seed: 1, Seeds: 20, Top: 500, Delay: 100, Growth: 0.1, Orders: RankOrders()}
}

// RankOrders are the names of all orders.
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
	return nil, fmt.Errorf("there is no order %q", name)
}

// An Importance is by what pages are important.
type Importance int

// The ways.
const (
	ByPageRank Importance = iota // of the whole graph
	ByInDegree
	importances
)

func (m Importance) String() string { return [...]string{"PageRank", "in-degree"}[m] }

// A RankRun is what a crawl came to.
type RankRun struct {
	Order  string
	Polite bool
	Found  [importances][]int // after how many fetches each of the important pages was there, ascending
	Idle   float64            // share of the time in which no host could be asked
}

// A GraphSummary is a graph, and what of it is found from the seeds.
type GraphSummary struct {
	Pages, Links, Hosts int
	Reached, Followed   int // pages and links that are found
}

// A RankResult is what the experiment came to.
type RankResult struct {
	GraphSummary
	Passes int // over all links, until the whole graph's PageRank stood still
	Runs   []RankRun
}

// After is how many fetches it took until a share of the important pages was there.
func (r *RankRun) After(m Importance, share float64) int {
	return r.Found[m][max(0, int(share*float64(len(r.Found[m]))+0.9999)-1)]
}

// At is the share of the important pages that are there after some fetches.
func (r *RankRun) At(m Importance, fetches int) float64 {
	n, _ := slices.BinarySearch(r.Found[m], fetches+1)
	return float64(n) / float64(len(r.Found[m]))
}

// Area is that under the curve of the share found over the share fetched: 1 if all are there at once.
func (r *RankRun) Area(m Importance, pages int) float64 {
	sum := 0
	for _, at := range r.Found[m] {
		sum += pages - at
	}
	return float64(sum) / float64(pages) / float64(len(r.Found[m]))
}

var errFewPages = errors.New("too few pages are found from the seeds: take others (--seed), or more (--seeds)")

// Run makes all crawls, and tells progress how many are done of how many.
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
	crawls.SetLimit(2) // each has some 100 bytes a page
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
		err = fmt.Errorf("%w: %d of %d pages, and %d of them are to be important", errFewPages, len(reached), g.Pages(),
			r.Top)
	}
	return GraphSummary{g.Pages(), g.Links(), g.Hosts(), len(reached), g.linksOf(reached)}, seeds, reached, err
}

func (r *Rank) crawl(ctx context.Context, g *Graph, run *RankRun, seeds []rank.ID, top *[importances][]rank.ID) error {
	order, err := r.newOrder(run.Order)
	if err != nil {
		return err
	}
	important := make([]uint8, g.Pages()) // a bit a way
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

// seeds draws pages that link to others: front pages of hosts, where these are known.
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

// minChange is the change between two passes, as a share of all rank, that is none.
const minChange = 1e-5

// topByPageRank are the pages with the highest PageRank in the graph of all that is reached.
func (r *Rank) topByPageRank(ctx context.Context, g *Graph, reached []rank.ID) (top []rank.ID, passes int, err error) {
	o := pagerank.New(0)
	o.Grow(g.Pages())
	passes, err = iterate(ctx, o, g, reached, reached)
	if err != nil {
		return nil, 0, err
	}
	return r.top(reached, func(u rank.ID) float64 { return o.Importance(u, 0) }), passes, nil
}

// settle makes passes over the links of pages until the ranks of URLs stand still.
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

// top are the pages that are the most important; of pages that are as important, those that were reached first.
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
