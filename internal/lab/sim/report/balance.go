package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"kumo/internal/lab/sim/experiments"
)

// Balance prints the results of load balancing with predicted times, and writes tables and pictures.
func Balance(out io.Writer, to *Folder, w *experiments.Balance, r *experiments.BalanceResult) error {
	b := balanceSheet{Balance: w, r: r}
	b.printf("Means of %d runs, each with different pages; seed %d\n", w.Runs, w.Seed)
	for _, print := range []func(){b.factors, b.splits, b.swarm, b.variance, b.curve, b.whole, b.crawls} {
		print()
	}
	b.statements(to, "What the paper states; in experiment 5, goals of kumo. Changes are ± two standard errors.",
		w.Judge(r))
	return b.finish(out, to, w.Tables(r), w.Pictures(r))
}

type balanceSheet struct {
	sheet
	*experiments.Balance
	r *experiments.BalanceResult
}

func (b *balanceSheet) factors() {
	for i := range b.Factors {
		f := &b.Factors[i]
		m := f.Machine
		title := fmt.Sprintf("Experiment 1, %s. Otherwise %g cores, %g GHz, %g GB, %g and %g Mb/s to network and disk, %d "+
			"URLs.\nSeconds, as predicted for an unknown machine, and the resource in use nearly all the time", f.Name, m.Cores,
			m.GHz,
			m.MemoryGB, m.NetworkMbps, m.DiskMbps, f.URLs)
		b.grid(title, func(tab io.Writer) {
			fmt.Fprintf(tab, "%s\t", f.Name)
			for _, p := range b.Programs {
				fmt.Fprintf(tab, "%s: seconds\tpredicted\tlimit\t", p.Name)
			}
			fmt.Fprintln(tab)
			for _, v := range f.Values {
				fmt.Fprintf(tab, "%g %s\t", v, f.Unit)
				for k := range b.r.Factors {
					if row := &b.r.Factors[k]; row.Factor == i && row.Value == v {
						mean, deviation := row.Mean()
						fmt.Fprintf(tab, "%.1f ± %.1f\t%.1f\t%s\t", mean, deviation, row.Predicted, row.Limit())
					}
				}
				fmt.Fprintln(tab)
			}
		})
	}
}

func (b *balanceSheet) splits() {
	title := fmt.Sprintf("Experiment 2: %d URLs split among the five nodes of the paper: URLs, and seconds that each "+
		"node takes; whole runs.\nThe paper had 134 s and 233 s, a ratio of 0.575. Best is the shortest run by true times",
		b.URLs)
	b.grid(title, func(tab io.Writer) {
		fmt.Fprint(tab, "program\tsplit\t")
		for i := range b.Nodes {
			fmt.Fprintf(tab, "node %d\t", i+1)
		}
		fmt.Fprintln(tab, "run\tpredicted\ttail\tby even\t")
		for i := range b.r.Splits {
			s := &b.r.Splits[i]
			fmt.Fprintf(tab, "%s\t%s\t", s.Program, s.Way)
			for node, n := range s.Counts {
				fmt.Fprintf(tab, "%d: %.0f s\t", n, s.Mean(node))
			}
			fmt.Fprintf(tab, "%.1f s\t%.1f s\t%s\t%.3f\t\n", s.Run, s.PredictedRun, percent(s.Tail), s.Ratio)
		}
	})
}

func (b *balanceSheet) swarm() {
	title := "Experiment 3: random clusters, 100 URLs a node: run times relative to the shortest, and the cost of a split"
	b.grid(title, func(tab io.Writer) {
		fmt.Fprint(tab, "nodes\tclusters\tsplit\tmean\tworst\ttimes evaluated a node\t")
		if b.Now != nil {
			fmt.Fprint(tab, "µs\t")
		}
		fmt.Fprintln(tab)
		for _, s := range b.r.Swarm {
			fmt.Fprintf(tab, "%d\t%d\t%s\t%.3f\t%.3f\t%.0f\t", s.Nodes, s.Clusters, s.Way, s.Mean, s.Worst, s.Evaluations)
			if b.Now != nil {
				fmt.Fprintf(tab, "%.0f\t", float64(s.Cost.Nanoseconds())/1000)
			}
			fmt.Fprintln(tab)
		}
	})
}

func (b *balanceSheet) variance() {
	title := "Experiment 3: 100 URLs for nodes that take n, n and 80n seconds"
	b.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "split\tn\tn\t80n\tdeviation of times\trun\t")
		for _, v := range b.r.Variance {
			fmt.Fprintf(tab, "%s\t%d\t%d\t%d\t%.1f s\t%.0f s\t\n", v.Way, v.Counts[0], v.Counts[1], v.Counts[2], v.Deviation,
				v.Seconds)
		}
	})
}

func (b *balanceSheet) curve() {
	title := fmt.Sprintf("Experiment 4: after so many samples of the five nodes, means of %d models. Errors are of "+
		"logarithms: 0.1 is about 10 %%", b.Models)
	b.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "program\tsplit\tsamples\tbasis\terror, held back\terror, fresh\trun\tby the shortest\tworst\t")
		for _, c := range b.r.Curve {
			held := "-"
			if !math.IsNaN(c.HeldBack) {
				held = fmt.Sprintf("%.3f", c.HeldBack)
			}
			fmt.Fprintf(tab, "%s\t%s\t%d\t%v\t%s\t%.3f\t%.1f s\t%.3f\t%.3f\t\n", c.Program, c.Way, c.Samples, c.Basis,
				held, c.Error, c.Run, c.Longer, c.Worst)
		}
	})
}

func (b *balanceSheet) whole() {
	title := "Experiment 4: a cold start. Each run adds a sample for each node"
	b.grid(title, func(tab io.Writer) {
		fmt.Fprintln(tab, "program\trun\tsamples\tbasis\tsplit\terror\trun\tby the shortest\t")
		for _, c := range b.r.Whole {
			fmt.Fprintf(tab, "%s\t%d\t%d\t%v\t%v\t%.3f\t%.1f s\t%.3f\t\n", c.Program, c.Number, c.Samples, c.Basis, c.Counts,
				c.Error, c.Run, c.Longer)
		}
	})
}

func (b *balanceSheet) crawls() {
	if len(b.r.Crawls) == 0 {
		return
	}
	title := fmt.Sprintf("Experiment 5: %d hosts of %d pages in the mean; a delay of %v in the mean. Pages of each node, "+
		"and how busy it was", b.Crawl.Hosts, b.Crawl.Pages, b.Crawl.Delay)
	b.grid(title, func(tab io.Writer) {
		fmt.Fprint(tab, "strategy\t")
		for i, slow := range b.Crawl.Slowness {
			fmt.Fprintf(tab, "node %d (1/%g)\t", i+1, slow)
		}
		fmt.Fprintln(tab, "run\tshortest\ttail\tby shard\thosts moved\tstrategies' messages a page\tlinks'\tall\tlog "+
			"entries\t")
		for i := range b.r.Crawls {
			c := &b.r.Crawls[i]
			fmt.Fprintf(tab, "%s%s\t", c.Strategy, map[bool]string{true: ", node 1 slows"}[c.Slows])
			for _, n := range c.Nodes {
				fmt.Fprintf(tab, "%d: %.0f %%\t", n.Pages, 100*n.Busy)
			}
			strategies, links, all := c.PageMessages()
			fmt.Fprintf(tab, "%v\t%v\t%s\t%.3f\t%d\t%.2f\t%.2f\t%.2f\t%d\t\n", c.Time.Round(time.Second),
				c.Shortest.Round(time.Second), percent(c.Tail), c.Ratio, c.Moved, strategies, links, all, c.Appended)
		}
	})
}
