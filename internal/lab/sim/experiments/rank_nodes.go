package experiments

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/pagerank"
)

// RankNodes is an experiment with nodes that share a crawl. Each ranks the URLs of its own hosts, by the links that it
// finds and the contributions that others send. It measures how close these ranks are to PageRank in the graph that all
// nodes have found together.
type RankNodes struct {
	Rank            // parameters of the crawls: Seed, Seeds, Top and Growth
	Nodes []int     // number of nodes of each crawl
	At    []float64 // shares of the pages after which the ranks are compared, ascending
	Batch int       // pages that a node fetches between two batches of contributions
}

// DefaultRankNodes returns the default experiment. A batch after a hundred pages is about one per second for a node.
func DefaultRankNodes() RankNodes {
	return RankNodes{Rank: RankOfPaper(), At: []float64{0.02, 0.1, 0.25, 0.5, 1}, Batch: 100}
}

// A RankNodesRun is a crawl by a number of nodes.
type RankNodesRun struct {
	Nodes  int
	Silent bool // links to others' URLs are sent without their contributions
	Points []RankNodesPoint
}

// A RankNodesPoint compares the ranks at one time.
type RankNodesPoint struct {
	Fetched, Known int     // URLs
	RemoteLinks    int     // links found to URLs of another node
	Sent           int     // contributions sent; one may stand for several links, or for a change
	Resent         int     // of Sent: after a pass, not because of a link
	Overlap        int     // of the Top URLs by the graph found so far, how many are among the Top by the nodes
	Tau            float64 // Kendall's tau of all known URLs' ranks by the nodes and by the graph found so far
	Found          int     // of the Top pages of the complete graph, how many were fetched
}

// A RankNodesResult is the result of the experiment.
type RankNodesResult struct {
	GraphSummary
	Runs []RankNodesRun
}

var errNoHosts = errors.New("the hosts of the graph's pages are unknown, but the nodes share hosts: pages must be " +
	"URLs, or numbers with --host-pages")

// Run makes all crawls. progress receives the number of finished crawls and of all.
func (r *RankNodes) Run(ctx context.Context, g *Graph, progress func(done, of int)) (*RankNodesResult, error) {
	if g.Hosts() == 0 {
		return nil, errNoHosts
	}
	ground, seeds, reached, err := r.explore(g)
	if err != nil {
		return nil, err
	}
	res := &RankNodesResult{GraphSummary: ground}
	top, _, err := r.topByPageRank(ctx, g, reached)
	if err != nil {
		return nil, err
	}
	for _, n := range r.Nodes {
		res.Runs = append(res.Runs, RankNodesRun{Nodes: n})
		if n > 1 {
			res.Runs = append(res.Runs, RankNodesRun{Nodes: n, Silent: true})
		}
	}
	for i := range res.Runs {
		if err := r.crawl(ctx, g, &res.Runs[i], seeds, top, len(reached)); err != nil {
			return nil, err
		}
		progress(i+1, len(res.Runs))
	}
	return res, nil
}

func (r *RankNodes) crawl(ctx context.Context, g *Graph, run *RankNodesRun, seeds, top []rank.ID, reached int) error {
	c := newRankCluster(g, r.Seed, run.Nodes, run.Silent, r.Growth, r.Batch)
	j := rankNodesJudge{RankNodes: r, g: g, c: c, run: run, top: top, whole: pagerank.New(0)}
	j.whole.Grow(g.Pages())
	for _, at := range r.At {
		j.at = append(j.at, max(1, int(at*float64(reached))))
	}
	err := c.run(ctx, seeds, j.fetched)
	if err == nil && len(run.Points) < len(r.At) {
		err = fmt.Errorf("%d nodes have fetched %d of %d pages", run.Nodes, len(c.pages), reached)
	}
	return err
}

// A rankNodesJudge compares the nodes' ranks with those in the graph that all of them have found.
type rankNodesJudge struct {
	*RankNodes
	g     *Graph
	c     *rankCluster
	run   *RankNodesRun
	top   []rank.ID       // the most important pages of the complete graph
	whole *pagerank.Order // ranks in the graph found so far
	at    []int           // numbers of fetches of the next points
}

func (j *rankNodesJudge) fetched(ctx context.Context) error {
	for len(j.at) > 0 && len(j.c.pages) == j.at[0] {
		j.at = j.at[1:]
		p, err := j.point(ctx)
		if err != nil {
			return err
		}
		j.run.Points = append(j.run.Points, p)
	}
	return nil
}

func (j *rankNodesJudge) point(ctx context.Context) (p RankNodesPoint, err error) {
	c := j.c
	if _, err := iterate(ctx, j.whole, j.g, c.pages, c.known); err != nil {
		return p, err
	}
	byNodes := make([]float64, len(c.known))
	byWhole := make([]float64, len(c.known))
	for i, u := range c.known {
		byNodes[i], byWhole[i] = c.importance(u), j.whole.Importance(u, 0)
	}
	p = RankNodesPoint{Fetched: len(c.pages), Known: len(c.known), RemoteLinks: c.remoteLinks, Sent: c.sent,
		Resent: c.resent,
		Tau:    kendall(byNodes, byWhole)}
	want := map[rank.ID]bool{}
	for _, u := range j.Rank.top(c.known, func(u rank.ID) float64 { return j.whole.Importance(u, 0) }) {
		want[u] = true
	}
	for _, u := range j.Rank.top(c.known, c.importance) {
		if want[u] {
			p.Overlap++
		}
	}
	for _, u := range j.top {
		if c.fetched[u] {
			p.Found++
		}
	}
	return p, nil
}

// Tables returns the results with all digits.
func (r *RankNodes) Tables(res *RankNodesResult) []Table {
	t := newTable("nodes", "nodes", "silent", "fetched", "share_fetched", "known", "links_abroad", "links_sent",
		"sent_again", "top_common", "tau", "top_found")
	for i := range res.Runs {
		run := &res.Runs[i]
		for _, p := range run.Points {
			t.add(run.Nodes, run.Silent, p.Fetched, float64(p.Fetched)/float64(res.Reached), p.Known, p.RemoteLinks, p.Sent,
				p.Resent, p.Overlap, p.Tau, p.Found)
		}
	}
	return []Table{t}
}

// Pictures returns overlap and tau over the share of pages fetched.
func (r *RankNodes) Pictures(res *RankNodesResult) []NamedPicture {
	overlap := Panel{Title: fmt.Sprintf("share of the %d that rank highest by one PageRank", r.Top)}
	tau := Panel{Title: "Kendall's tau over all known URLs"}
	for _, panel := range []*Panel{&overlap, &tau} {
		panel.X = "share of all pages fetched"
	}
	for i := range res.Runs {
		run := &res.Runs[i]
		a, b := Curve{Name: run.name()}, Curve{Name: run.name()}
		for _, p := range run.Points {
			a.X = append(a.X, float64(p.Fetched)/float64(res.Reached))
			a.Y, b.Y = append(a.Y, float64(p.Overlap)/float64(r.Top)), append(b.Y, p.Tau)
		}
		b.X = slices.Clone(a.X)
		overlap.Curves, tau.Curves = append(overlap.Curves, a), append(tau.Curves, b)
	}
	return []NamedPicture{{Name: "rank-nodes", Title: "Nodes that rank their own URLs",
		Picture: Picture{Columns: 1, Panels: []Panel{overlap, tau}}}}
}

func (run *RankNodesRun) name() string {
	switch {
	case run.Nodes == 1:
		return "1 node"
	case run.Silent:
		return fmt.Sprintf("%d nodes, silent", run.Nodes)
	}
	return fmt.Sprintf("%d nodes", run.Nodes)
}
