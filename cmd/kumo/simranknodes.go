package main

import (
	"slices"

	"kumo/internal/lab/sim/report"

	"github.com/spf13/cobra"
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
	return report.RankNodes(cmd.OutOrStdout(), &s.out.Folder, &s.nodes, res)
}
