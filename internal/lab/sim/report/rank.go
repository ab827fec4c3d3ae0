package report

import (
	"fmt"
	"io"

	"kumo/internal/lab/sim/experiments"
)

// Rank prints in which order important pages are fetched, and writes tables and pictures.
func Rank(out io.Writer, to *Folder, r *experiments.Rank, res *experiments.RankResult) error {
	s := rankSheet{Rank: r}
	s.ground(&res.GraphSummary)
	for _, polite := range []bool{false, true} {
		for _, by := range []experiments.Importance{experiments.ByPageRank, experiments.ByInDegree} {
			s.orders(res, by, polite)
		}
	}
	if all := r.Judge(res); len(all) > 0 {
		s.statements(to, "What the paper states.", all)
	}
	return s.finish(out, to, r.Tables(res), r.Pictures(res))
}

type rankSheet struct {
	sheet
	*experiments.Rank
}

func (s *rankSheet) ground(g *experiments.GraphSummary) {
	hosts := "on hosts that are not known"
	if g.Hosts > 0 {
		hosts = fmt.Sprintf("%d hosts", g.Hosts)
	}
	s.printf("%d pages, %d links, %s; %d pages and %d links reached from %d seeds; seed %d\n", g.Pages, g.Links,
		hosts, g.Reached, g.Followed, s.Seeds, s.Seed)
}

func (s *rankSheet) orders(res *experiments.RankResult, by experiments.Importance, polite bool) {
	if polite && res.Hosts == 0 {
		return
	}
	title := fmt.Sprintf("The %d most important pages by %v, one queue", s.Top, by)
	if polite {
		title = fmt.Sprintf("The %d most important pages by %v, a fetch of a host in %d", s.Top, by, s.Delay+1)
	}
	s.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "order\t50 % after\t90 % after\t99 % after\tof all pages: 50 %\t90 %\t99 %\tarea\tidle\t")
		for i := range res.Runs {
			run := &res.Runs[i]
			if run.Polite != polite {
				continue
			}
			var after []int
			for _, share := range []float64{0.5, 0.9, 0.99} {
				after = append(after, run.After(by, share))
			}
			fmt.Fprintf(tab, "%s\t%d\t%d\t%d\t", run.Order, after[0], after[1], after[2])
			for _, n := range after {
				fmt.Fprintf(tab, "%s\t", percent(float64(n)/float64(res.Reached)))
			}
			fmt.Fprintf(tab, "%.4f\t%s\t\n", run.Area(by, res.Reached), percent(run.Idle))
		}
	})
}

// RankNodes prints how well nodes that share a crawl rank their URLs, and writes tables and pictures.
func RankNodes(out io.Writer, to *Folder, n *experiments.RankNodes, res *experiments.RankNodesResult) error {
	s := rankSheet{Rank: &n.Rank}
	s.ground(&res.GraphSummary)
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
					percent(float64(p.Fetched)/float64(res.Reached)), p.Known, percent(float64(p.Overlap)/float64(n.Rank.Top)),
					p.Tau, p.RemoteLinks, p.Sent, p.Resent, percent(float64(p.Found)/float64(n.Rank.Top)))
			}
		}
	})
	return s.finish(out, to, n.Tables(res), n.Pictures(res))
}
