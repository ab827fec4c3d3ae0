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

const simRankLong = `Try out in which order a crawl that cannot fetch all it knows fetches most of what matters.

Igloo (Ye, Yu and Ma, 2002) fetches what has the highest PageRank in the graph found so far. It was tried on one
university's pages: how many of the 500 most important ones are there, after how many fetches? Here each order crawls a
graph to its end:

  pagerank   the highest PageRank so far
  opic       the most cash: each page shares out what it was given (Abiteboul, Preda and Cobena, 2003)
  indegree   the most links so far
  breadth    as they were found
  depth      the least depth; where there is one queue, the same
  random     any of those that wait

once from one queue, and once politely: each host has a queue, and is left alone for as long as --delay fetches take.
Important is, in one table, what has the highest PageRank in the whole graph, in another, what has most links. Then
each of the paper's statements is judged by the numbers: seen, or not seen, and why.

The graph is a made-up web of --pages pages, or read from a file, plain or compressed by gzip or zstd:

  edges      a line has two pages: names or URLs
  adjacency  a line has a page, then those that it links to
  numbered   the first line says how many pages there are; each that follows has the numbers, from 0, of those to which
             the next page links

or from the folder that kumo export --to links has filled: the graph of what a crawl has.

Hosts are those of URLs; where pages have numbers, --host-pages of them in a row are a host. A million pages take some
400 MB and, on two processors, half a minute.

With --nodes nodes share a crawl: each ranks the URLs of its own hosts by the links that it finds and by what others
tell it of theirs. When shares of the pages are fetched (--at), the ranks are compared with one PageRank.

The same flags give the same bytes. docs/decisions/rank.md has the results.`

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
	nodes     experiments.RankNodes // where --nodes is there
	out       simFolder
}

func simRank() *cobra.Command {
	s := rankSim{rank: experiments.RankOfPaper(), nodes: experiments.DefaultRankNodes(),
		made: experiments.GeneratedGraph{Pages: 1_000_000, BySize: experiments.BySize}}
	cmd := &cobra.Command{Use: "rank", Short: "Compare orders in which what waits is fetched", Long: simRankLong,
		Example: simRankExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	f.StringVar(&s.graph, "graph", "", "read the graph from `FILE`, or of an export's folder; -: from standard "+
		"input")
	f.IntVar(&s.made.Pages, "pages", s.made.Pages, "make up a web of `N` pages")
	f.Float64Var(&s.made.BySize, "by-size", s.made.BySize, "let this `SHARE` of its links to other hosts lead to any "+
		"page's host, so that large hosts are linked to more")
	f.IntVar(&s.hostPages, "host-pages", 0, "with --graph, have `N` pages in a row on a host where pages have numbers")
	s.out.bind(f, "tables as CSV and pictures as SVG")
	f.Uint64Var(&s.rank.Seed, "seed", s.rank.Seed, "the seed's `NUMBER`")
	f.IntVar(&s.rank.Seeds, "seeds", s.rank.Seeds, "begin each crawl with `N` pages, drawn from the front pages")
	f.IntVar(&s.rank.Top, "top", s.rank.Top, "have `N` important pages")
	f.IntVar(&s.rank.Delay, "delay", s.rank.Delay, "leave a host alone for the time of `N` fetches after each")
	f.Float64Var(&s.rank.Growth, "growth", s.rank.Growth, "make a pass of PageRank when links have become more "+
		"by this `SHARE`")
	f.StringSliceVar(&s.rank.Orders, "orders", s.rank.Orders, "try these orders, `NAME,NAME,...`")
	f.IntSliceVar(&s.nodes.Nodes, "nodes", nil, "have so many nodes share a crawl, `N,N,...`, and judge how well "+
		"they rank")
	f.Float64SliceVar(&s.nodes.At, "at", s.nodes.At, "with --nodes, judge when so large `SHARE,SHARE,...`s of the pages "+
		"are fetched")
	f.IntVar(&s.nodes.Batch, "batch", s.nodes.Batch, "with --nodes, have each send links to others after `N` pages")
	f.SortFlags = false
	return s.out.runs(cmd, s.check, s.run)
}

// maxRankPages is what takes some 4 GB, and ten minutes.
const maxRankPages = 10_000_000

func (s *rankSim) check(cmd *cobra.Command) error {
	r := &s.rank
	switch {
	case s.graph != "" && (cmd.Flags().Changed("pages") || cmd.Flags().Changed("by-size")):
		return usagef("--pages and --by-size say nothing with --graph")
	case s.graph == "" && s.hostPages != 0:
		return usagef("--host-pages says something only with --graph")
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
			return usagef("--orders: there is no order %q, but %s", o, strings.Join(experiments.RankOrders(), ", "))
		}
		if slices.Contains(r.Orders[:i], o) {
			return usagef("--orders: %s is there twice", o)
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
		return nil, usagef("--host-pages says nothing of %s, whose pages have URLs", s.graph)
	}
	var lists [2]*os.File
	for n, name := range []string{links.Nodes, links.Edges} {
		if lists[n], err = os.Open(filepath.Join(s.graph, name)); err != nil {
			return nil, fmt.Errorf("--graph: %s is a folder, but not of kumo export --to links: %w", s.graph, err)
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

// maxRankNodes is what takes some 200 MB for each million pages.
const maxRankNodes = 64

func (s *rankSim) checkNodes(cmd *cobra.Command) error {
	n := &s.nodes
	alone, together := []string{"at", "batch"}, []string{"orders", "delay"}
	if len(n.Nodes) == 0 {
		for _, name := range alone {
			if cmd.Flags().Changed(name) {
				return usagef("--%s says something only with --nodes", name)
			}
		}
		return nil
	}
	for _, name := range together {
		if cmd.Flags().Changed(name) {
			return usagef("--%s says nothing with --nodes", name)
		}
	}
	for _, of := range n.Nodes {
		if of < 1 || of > maxRankNodes {
			return usagef("--nodes: %d are not possible, but from 1 to %d", of, maxRankNodes)
		}
	}
	for _, at := range n.At {
		if !(at > 0 && at <= 1) {
			return usagef("--at: %v is no share above 0, and 1 at the most", at)
		}
	}
	switch {
	case len(n.At) == 0:
		return usagef("--at is empty: say when nodes are to be judged")
	case n.Batch < 1:
		return usagef("--batch is %d: 1 or more is possible", n.Batch)
	}
	slices.Sort(n.At)
	n.At = slices.Compact(n.At)
	return nil
}
