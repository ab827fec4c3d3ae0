package report

import (
	"fmt"
	"io"

	"kumo/internal/lab/sim/experiments"
)

// Rank prints in which order important pages are fetched, and writes tables and pictures.
func Rank(out io.Writer, to *Folder, r *experiments.Rank, res *experiments.RankResult) error {
	printGround(out, r, &res.RankGround)
	s := rankTables{r}
	for _, polite := range []bool{false, true} {
		for _, by := range []experiments.Importance{experiments.ByPageRank, experiments.ByInDegree} {
			if err := s.print(out, res, by, polite); err != nil {
				return err
			}
		}
	}
	if all := r.Judge(res); len(all) > 0 {
		printStatements(out, "What the paper states.", all)
	}
	return to.results(r.Tables(res), r.Pictures(res))
}

type rankTables struct{ *experiments.Rank }

func printGround(w io.Writer, r *experiments.Rank, g *experiments.RankGround) {
	hosts := "on hosts that are not known"
	if g.Hosts > 0 {
		hosts = fmt.Sprintf("%d hosts", g.Hosts)
	}
	fmt.Fprintf(w, "%d pages, %d links, %s; %d pages and %d links reached from %d seeds; seed %d\n", g.Pages, g.Links,
		hosts, g.Reached, g.Followed, r.Seeds, r.Seed)
}

func (s rankTables) print(w io.Writer, res *experiments.RankResult, by experiments.Importance, polite bool) error {
	if polite && res.Hosts == 0 {
		return nil
	}
	title := fmt.Sprintf("The %d most important pages by %v, one queue", s.Top, by)
	if polite {
		title = fmt.Sprintf("The %d most important pages by %v, a fetch of a host in %d", s.Top, by, s.Delay+1)
	}
	return grid(w, title, func(tab io.Writer) {
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
