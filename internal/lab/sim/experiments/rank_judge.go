package experiments

import (
	"fmt"
	"math"
	"slices"

	"kumo/internal/view/results"
)

// Interpretations of the paper's words.
const (
	mostFound        = 0.9 // share of the important pages that counts as found
	littleDifference = 0.1 // share of the important pages
)

// Judge evaluates the paper's statements for the crawls with the orders concerned. Important pages are those with the
// highest final PageRank; early on means as many fetches as there are important pages.
func (r *Rank) Judge(res *RankResult) []results.Statement {
	var j judged
	for _, polite := range []bool{false, true} {
		best := res.run("pagerank", polite)
		if best == nil {
			continue
		}
		how := ""
		if polite {
			how = "politely: "
		}
		after := best.After(ByPageRank, mostFound)
		for _, other := range []string{"breadth", "random"} {
			run := res.run(other, polite)
			if run == nil {
				continue
			}
			late := run.After(ByPageRank, mostFound)
			j.add("", fmt.Sprintf("%sPageRank has %.0f %% of the important pages after fewer fetches than %s", how,
				100*mostFound, other), after < late, fmt.Sprintf("after %d and %d, %s and %s of all pages", after, late,
				percentOf(after, res.Reached), percentOf(late, res.Reached)),
				"the last of them have few links from pages that rank high")
			if other == "breadth" {
				r.early(&j, how, best, run)
			}
		}
	}
	return j
}

func (r *Rank) early(j *judged, how string, a, b *RankRun) {
	worst, at := 0.0, 0
	for n := 1; n <= r.Top; n++ {
		if d := math.Abs(a.At(ByPageRank, n) - b.At(ByPageRank, n)); d > worst {
			worst, at = d, n
		}
	}
	j.add("", fmt.Sprintf("%sthere is little difference early on, in the first %d fetches", how, r.Top),
		worst <= littleDifference, fmt.Sprintf("%.0f points at the most: after %d fetches %.0f %% and %.0f %%", 100*worst,
			at, 100*a.At(ByPageRank, at), 100*b.At(ByPageRank, at)),
		"the links of the first pages already show which pages are important")
}

func percentOf(n, of int) string { return fmt.Sprintf("%.2g %%", 100*float64(n)/float64(of)) }

func (res *RankResult) run(order string, polite bool) *RankRun {
	i := slices.IndexFunc(res.Runs, func(run RankRun) bool { return run.Order == order && run.Polite == polite })
	if i < 0 {
		return nil
	}
	return &res.Runs[i]
}

// Tables returns the results with all digits.
func (r *Rank) Tables(res *RankResult) []Table {
	sums := newTable("orders", "polite", "order", "important_by", "half_after", "ninety_percent_after", "all_after",
		"area", "idle")
	curves := newTable("curves", "polite", "order", "important_by", "fetched", "share_fetched", "share_found")
	for i := range res.Runs {
		run := &res.Runs[i]
		for m := range importances {
			sums.add(run.Polite, run.Order, m, run.After(m, 0.5), run.After(m, mostFound), run.After(m, 1),
				run.Area(m, res.Reached), run.Idle)
			for _, n := range res.samples() {
				curves.add(run.Polite, run.Order, m, n, float64(n)/float64(res.Reached), run.At(m, n))
			}
		}
	}
	return []Table{sums, curves}
}

// samples returns the numbers of fetches at which curves have points: steps of a twentieth, and smaller ones at the
// beginning.
func (res *RankResult) samples() (all []int) {
	for n := 1; n < res.Reached; n = max(n+1, n+n/20) {
		all = append(all, n)
	}
	return append(all, res.Reached)
}

// Pictures returns the share of important pages found over the share of pages fetched: with a linear axis, and with a
// logarithmic axis that shows the beginning.
func (r *Rank) Pictures(res *RankResult) []NamedPicture {
	return []NamedPicture{r.picture(res, "rank", false), r.picture(res, "rank-log", true)}
}

func (r *Rank) picture(res *RankResult, name string, log bool) NamedPicture {
	p := NamedPicture{Name: name, Title: fmt.Sprintf("Share of the %d most important pages found", r.Top),
		Picture: Picture{Columns: 1}}
	for m := range importances {
		for _, polite := range []bool{false, true} {
			panel := Panel{Title: fmt.Sprintf("important by %v, %s", m, inWords(polite)), X: "share of all pages fetched",
				Y: "share found", LogX: log}
			for i := range res.Runs {
				if run := &res.Runs[i]; run.Polite == polite {
					panel.Curves = append(panel.Curves, run.curve(m, res))
				}
			}
			if len(panel.Curves) > 0 {
				p.Panels = append(p.Panels, panel)
			}
		}
	}
	return p
}

func inWords(polite bool) string {
	if polite {
		return "polite"
	}
	return "one queue"
}

func (r *RankRun) curve(m Importance, res *RankResult) Curve {
	c := Curve{Name: r.Order}
	for _, n := range res.samples() {
		c.X, c.Y = append(c.X, float64(n)/float64(res.Reached)), append(c.Y, r.At(m, n))
	}
	return c
}
