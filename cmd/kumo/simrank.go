package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"kumo/internal/archive/export/links"
	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simRankLong = `Compare fetch orders: which one fetches most important pages if a crawl cannot fetch everything?

Igloo (Ye, Yu and Ma, 2002) fetches the URL with the highest PageRank in the graph found so far. Its
authors tested it on one university's pages: how many of the 500 most important pages are found after
how many fetches? Here each order crawls a graph completely:

  pagerank   the highest PageRank so far
  opic       the most cash: each page distributes its cash (Abiteboul, Preda and Cobena, 2003)
  indegree   the most links so far
  breadth    first found first
  depth      the least depth; the same with a single queue
  random     a random pending URL

once from a single queue, and once politely: each host has a queue, and is left alone for the time
of --delay fetches. One table defines importance as PageRank in the whole graph, another as the
number of links. Then each statement of the paper is compared with the numbers: seen or not seen,
and why.

The graph is a synthetic web of --pages pages, or a file, plain or compressed with gzip or zstd:

  edges      each line has two pages: names or URLs
  adjacency  each line has a page, then those that it links to
  numbered   the first line has the number of pages; each following line has the numbers, from 0, of
             the targets of the next page

or the folder of kumo export --to links: the graph of a crawl.

Hosts are those of URLs; if pages have numbers, --host-pages of them in a row form a host. A million
pages take some 400 MB and, on two processors, half a minute.

With --nodes, several nodes share a crawl. Each ranks the URLs of its own hosts by the links that it
finds, and by reports of the others. When given shares of the pages are fetched (--at), the ranks
are compared with a central PageRank.

The same flags give the same bytes. The results are in docs/decisions/rank.md.`

const simRankExample = `  kumo sim rank                              # a made-up web of a million pages
  kumo sim rank --pages 100000 --out rank    # a smaller one; tables as CSV, and pictures as SVG
  kumo sim rank --graph links.txt.zst --top 1000
  kumo export --to links crawls/example.com links && kumo sim rank --graph links
  kumo sim rank --graph uk.graph-txt.gz --host-pages 100 --orders pagerank,breadth
  kumo sim rank --nodes 1,4,16               # nodes that rank their own hosts' URLs, beside one PageRank`

type rankSim struct {
	rank      experiments.Rank
	graph     string
	made      experiments.GeneratedGraph
	hostPages int
	nodes     experiments.RankNodes // with --nodes
	out       simFolder
}

func simRank() *cobra.Command {
	s := rankSim{rank: experiments.RankOfPaper(), nodes: experiments.DefaultRankNodes(),
		made: experiments.GeneratedGraph{Pages: 1_000_000, BySize: experiments.BySize}}
	cmd := &cobra.Command{Use: "rank", Short: "Compare fetch orders of pending URLs", Long: simRankLong,
		Example: simRankExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&s.graph, "graph", "", "read the graph from `FILE` or an export's folder; -: from standard "+
		"input")
	f.IntVar(&s.made.Pages, "pages", s.made.Pages, "generate a web of `N` pages")
	f.Float64Var(&s.made.BySize, "by-size", s.made.BySize, "this `SHARE` of its links to other hosts leads to any "+
		"page's host, so that large hosts have more links")
	f.IntVar(&s.hostPages, "host-pages", 0, "with --graph, `N` numbered pages in a row form a host")
	s.out.bind(f, "tables as CSV and plots as SVG")
	f.Uint64Var(&s.rank.Seed, "seed", s.rank.Seed, "`NUMBER` of the seed")
	f.IntVar(&s.rank.Seeds, "seeds", s.rank.Seeds, "start each crawl with `N` pages, drawn from the front pages")
	f.IntVar(&s.rank.Top, "top", s.rank.Top, "number `N` of important pages")
	f.IntVar(&s.rank.Delay, "delay", s.rank.Delay, "after each fetch, leave a host alone for the time of `N` fetches")
	f.Float64Var(&s.rank.Growth, "growth", s.rank.Growth, "compute PageRank when the number of links has grown "+
		"by this `SHARE`")
	f.StringSliceVar(&s.rank.Orders, "orders", s.rank.Orders, "try these orders, `NAME,NAME,...`")
	f.IntSliceVar(&s.nodes.Nodes, "nodes", nil, "share a crawl among this many nodes, `N,N,...`, and judge how well "+
		"they rank")
	f.Float64SliceVar(&s.nodes.At, "at", s.nodes.At, "with --nodes, judge when these `SHARE,SHARE,...`s of the pages "+
		"are fetched")
	f.IntVar(&s.nodes.Batch, "batch", s.nodes.Batch, "with --nodes, send links to other nodes after `N` pages")
	f.SortFlags = false
	return s.out.runs(cmd, s.check, s.run)
}

// maxRankPages takes some 4 GB, and ten minutes.
const maxRankPages = 10_000_000

func (s *rankSim) check(cmd *cobra.Command) error {
	r := &s.rank
	switch {
	case s.graph != "" && (cmd.Flags().Changed("pages") || cmd.Flags().Changed("by-size")):
		return usagef("--pages and --by-size have no effect with --graph")
	case s.graph == "" && s.hostPages != 0:
		return usagef("--host-pages has an effect only with --graph")
	case s.hostPages < 0:
		return usagef("--host-pages is %d: 1 or more is possible", s.hostPages)
	case s.made.Pages < 1000 || s.made.Pages > maxRankPages:
		return usagef("--pages is %d: from 1000 to %d are possible", s.made.Pages, maxRankPages)
	case !(s.made.BySize >= 0 && s.made.BySize <= 1):
		return usagef("--by-size is %v: from 0 to 1 is possible", s.made.BySize)
	case r.Seeds < 1:
		return usagef("--seeds must be 1 or more")
	case r.Top < 1:
		return usagef("--top must be 1 or more")
	case r.Delay < 0:
		return usagef("--delay is %d: 0 or more is possible", r.Delay)
	case !(r.Growth >= 0.001 && r.Growth <= 10):
		return usagef("--growth is %v: from 0.001 to 10 is possible", r.Growth)
	case len(r.Orders) == 0:
		return usagef("--orders is empty: name some of %s", strings.Join(experiments.RankOrders(), ", "))
	}
	if err := s.checkNodes(cmd); err != nil {
		return err
	}
	for i, o := range r.Orders {
		if !slices.Contains(experiments.RankOrders(), o) {
			return usagef("--orders: %q is not one of %s", o, strings.Join(experiments.RankOrders(), ", "))
		}
		if slices.Contains(r.Orders[:i], o) {
			return usagef("--orders: %s is given twice", o)
		}
	}
	return nil
}

func (s *rankSim) read(stdin io.Reader) (*experiments.Graph, error) {
	if s.graph == "" {
		s.made.Seed = s.rank.Seed
		return s.made.Graph(), nil
	}
	if info, err := os.Stat(s.graph); err == nil && info.IsDir() {
		return s.readExport()
	}
	from := stdin
	if s.graph != "-" {
		f, err := os.Open(s.graph)
		if err != nil {
			return nil, fmt.Errorf("--graph: %w", err)
		}
		defer f.Close()
		from = f
	}
	g, err := experiments.ReadGraph(from, s.hostPages)
	if err != nil {
		return nil, fmt.Errorf("--graph %s: %w", s.graph, err)
	}
	return g, nil
}

func (s *rankSim) readExport() (_ *experiments.Graph, err error) {
	if s.hostPages > 0 {
		return nil, usagef("--host-pages has no effect on %s, whose pages have URLs", s.graph)
	}
	var lists [2]*os.File
	for n, name := range []string{links.Nodes, links.Edges} {
		if lists[n], err = os.Open(filepath.Join(s.graph, name)); err != nil {
			return nil, fmt.Errorf("--graph: %s is a folder, but not one of kumo export --to links: %w", s.graph, err)
		}
		defer lists[n].Close()
	}
	g, err := experiments.ReadNumbered(lists[0], lists[1])
	if err != nil {
		return nil, fmt.Errorf("--graph %s: %w", s.graph, err)
	}
	return g, nil
}

func (s *rankSim) run(cmd *cobra.Command) error {
	g, err := s.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	show, hide := runProgress()
	if len(s.nodes.Nodes) > 0 {
		s.nodes.Rank = s.rank
		res, err := s.nodes.Run(cmd.Context(), g, show)
		if hide(); err != nil {
			return err
		}
		return report.RankNodes(cmd.OutOrStdout(), &s.out.Folder, &s.nodes, res)
	}
	res, err := s.rank.Run(cmd.Context(), g, show)
	if hide(); err != nil {
		return err
	}
	return report.Rank(cmd.OutOrStdout(), &s.out.Folder, &s.rank, res)
}

// maxRankNodes takes some 200 MB for each million pages.
const maxRankNodes = 64

func (s *rankSim) checkNodes(cmd *cobra.Command) error {
	n := &s.nodes
	alone, together := []string{"at", "batch"}, []string{"orders", "delay"}
	if len(n.Nodes) == 0 {
		for _, name := range alone {
			if cmd.Flags().Changed(name) {
				return usagef("--%s has an effect only with --nodes", name)
			}
		}
		return nil
	}
	for _, name := range together {
		if cmd.Flags().Changed(name) {
			return usagef("--%s has no effect with --nodes", name)
		}
	}
	for _, of := range n.Nodes {
		if of < 1 || of > maxRankNodes {
			return usagef("--nodes: %d are not possible, but from 1 to %d", of, maxRankNodes)
		}
	}
	for _, at := range n.At {
		if !(at > 0 && at <= 1) {
			return usagef("--at: %v is not a share above 0 and at most 1", at)
		}
	}
	switch {
	case len(n.At) == 0:
		return usagef("--at is empty: give the shares at which to judge the nodes")
	case n.Batch < 1:
		return usagef("--batch is %d: 1 or more is possible", n.Batch)
	}
	slices.Sort(n.At)
	n.At = slices.Compact(n.At)
	return nil
}
