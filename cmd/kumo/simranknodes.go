package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"kumo/internal/lab/sim/experiments"
)

// mostRankNodes is what takes some 200 MB for each million pages.
const mostRankNodes = 64

// checkNodes checks what flags say of nodes that share a crawl.
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
		if of < 1 || of > mostRankNodes {
			return usagef("--nodes: %d are not possible, but from 1 to %d", of, mostRankNodes)
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

// runNodes has nodes share a crawl.
func (s *rankSim) runNodes(cmd *cobra.Command) error {
	g, err := s.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	s.nodes.Rank = s.rank
	show, hide := showRuns()
	res, err := s.nodes.Run(cmd.Context(), g, show)
	hide()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%d pages, %d links, %s; %d pages and %d links reached from %d seeds; seed %d\n", res.Pages,
		res.Links, hostsInWords(res.Hosts), res.Reached, res.Followed, s.rank.Seeds, s.rank.Seed)
	if err := s.printNodes(out, res); err != nil {
		return err
	}
	return s.write(s.nodes.Tables(res), s.nodes.Pictures(res))
}

func (s *rankSim) printNodes(w io.Writer, res *experiments.RankNodesResult) error {
	title := fmt.Sprintf("Ranks by nodes beside one PageRank of all links found so far: of the %d highest, and over all "+
		"known URLs", s.rank.Top)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintf(tab, "nodes\t\tfetched\tknown\tthe same %d\ttau\tlinks abroad\tsent\tof it again\timportant fetched\t\n",
			s.rank.Top)
		for i := range res.Runs {
			run := &res.Runs[i]
			told := ""
			if run.Silent {
				told = "silent"
			}
			for _, p := range run.Points {
				fmt.Fprintf(tab, "%d\t%s\t%s\t%d\t%s\t%.4f\t%d\t%d\t%d\t%s\t\n", run.Nodes, told,
					percent(float64(p.Fetched)/float64(res.Reached)), p.Known, percent(float64(p.Common)/float64(s.rank.Top)),
					p.Tau, p.Abroad, p.Sent, p.Again, percent(float64(p.Found)/float64(s.rank.Top)))
			}
		}
	})
}
