package report

import (
	"fmt"
	"io"

	"kumo/internal/lab/sim/experiments"
)

// RankNodes prints how well nodes that share a crawl rank their URLs, and writes tables and pictures.
func RankNodes(out io.Writer, to *Folder, n *experiments.RankNodes, res *experiments.RankNodesResult) error {
	s := rankSheet{Rank: &n.Rank}
	s.ground(&res.RankGround)
	title := fmt.Sprintf("Ranks by nodes beside one PageRank of all links found so far: of the %d highest, and over all "+
		"known URLs", n.Rank.Top)
	s.grid(title, func(tab io.Writer) {
		fmt.Fprintf(tab, "nodes\t\tfetched\tknown\tthe same %d\ttau\tlinks abroad\tsent\tof it again\timportant fetched\t\n",
			n.Rank.Top)
		for i := range res.Runs {
			run := &res.Runs[i]
			told := ""
			if run.Silent {
				told = "silent"
			}
			for _, p := range run.Points {
				fmt.Fprintf(tab, "%d\t%s\t%s\t%d\t%s\t%.4f\t%d\t%d\t%d\t%s\t\n", run.Nodes, told,
					percent(float64(p.Fetched)/float64(res.Reached)), p.Known, percent(float64(p.Common)/float64(n.Rank.Top)),
					p.Tau, p.Abroad, p.Sent, p.Again, percent(float64(p.Found)/float64(n.Rank.Top)))
			}
		}
	})
	return s.finish(out, to, n.Tables(res), n.Pictures(res))
}
