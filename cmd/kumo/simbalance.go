package main

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/view/results"
)

const simBalanceLong = `Make the experiments again by which Zhang, Tan, Chen and Lü (2019) judged their balancing by predicted times, in virtual time,
and some that they did not make.

  1  What each figure of a machine, and the number of URLs, does to the time of a piece: cores, clock, memory, network, disk
  2  500 URLs split among five nodes: evenly, as the paper did, by its particle swarm, by the shortest run
  3  The swarm against the shortest run on random clusters, and where the least variance is a long run
  4  What samples are worth: errors and whole runs after 0 to 500 of them, and from run to run of a cold start
  5  A crawl of 10,000 hosts, each left alone for 2 s after a request, by three nodes of which one is two times slower than the first,
     and one four times: --strategy shard against --strategy balance. And again while the first becomes eight times slower

A piece is fetched by a program on a made-up machine: its pages wait for servers, share the network, the cores and the disk, and are
so many at once as memory allows. There are two programs, which fetch the same pages and do the same work for each:

  paper  one process like the paper's, in Python on Hadoop: it begins slowly, uses one core, and loses time with more of them. What it
         takes is chosen so that the paper's split and the even one take about as long as they did there
  kumo   as kumo works: it begins at once, uses all cores, and many pages fit into memory

Predictions and splits are the code of a crawl, --strategy balance. Each of the paper's statements is judged by the numbers: seen, or
not seen, and why.

The same flags give the same bytes on one kind of processor, but for --cost. docs/decisions/balance-sim.md has the results.`

const simBalanceExample = `  kumo sim balance                  # the tables and what is seen, in less than a minute
  kumo sim balance --out balance    # and CSV, and pictures as SVG`

// A balanceSim is the command's flags.
type balanceSim struct {
	balance experiments.Balance
	cost    bool
	out     simFolder
}

func simBalance() *cobra.Command {
	b := balanceSim{balance: experiments.BalanceOfPaper()}
	cmd := &cobra.Command{Use: "balance", Short: "Make the experiments of balancing by predicted times again",
		Long: simBalanceLong, Example: simBalanceExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	b.out.bind(f, "tables as CSV and pictures as SVG")
	f.Uint64Var(&b.balance.Seed, "seed", b.balance.Seed, "the seed's `NUMBER`")
	f.IntVar(&b.balance.Runs, "runs", b.balance.Runs, "fetch each piece `K` times, with other pages; tables have the mean")
	f.IntVar(&b.balance.Models, "models", b.balance.Models, "let `K` models learn, each from other samples; tables "+
		"have the mean")
	f.IntVar(&b.balance.Crawl.Hosts, "hosts", b.balance.Crawl.Hosts,
		"crawl a web of `N` hosts in experiment 5; 0 leaves it out")
	f.BoolVar(&b.cost, "cost", false, "measure what a split takes")
	f.SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if b.balance.Seed < 1 {
			return usagef("--seed must be 1 or more")
		}
		if b.balance.Runs < 2 || b.balance.Runs > 1000 {
			return usagef("--runs is %d: from 2 to 1000 are possible", b.balance.Runs)
		}
		if b.balance.Models < 1 || b.balance.Models > 1000 {
			return usagef("--models is %d: from 1 to 1000 are possible", b.balance.Models)
		}
		if hosts := &b.balance.Crawl; hosts.Hosts == 0 {
			hosts.Strategies = nil
		} else if hosts.Hosts < 10 || hosts.Hosts > 100_000 {
			return usagef("--hosts is %d: 0, or from 10 to 100000 are possible", hosts.Hosts)
		}
		if b.cost {
			b.balance.Now = time.Now
		}
		if err := b.out.prepare(); err != nil {
			return err
		}
		return b.run(cmd)
	}
	return b.out.keeps(cmd)
}

func (b *balanceSim) run(cmd *cobra.Command) error {
	show, hide := showRuns()
	r, err := b.balance.Run(cmd.Context(), show)
	hide()
	if err != nil {
		return err
	}
	out, w := cmd.OutOrStdout(), &b.balance
	fmt.Fprintf(out, "Means of %d runs with other pages each; seed %d\n", w.Runs, w.Seed)
	for _, print := range []func(io.Writer, *experiments.BalanceResult) error{b.printFactors, b.printSplits, b.printSwarm,
		b.printVariance, b.printCurve, b.printWhole, b.printCrawls} {
		if err := print(out, &r); err != nil {
			return err
		}
	}
	printBalanceJudgement(out, w.Judge(&r))
	for _, t := range w.Tables(&r) {
		if err := b.out.table(t.Name, t.Write); err != nil {
			return err
		}
	}
	for _, p := range w.Pictures(&r) {
		if err := b.out.picture(p.Name, p.Title, p.SVG); err != nil {
			return err
		}
	}
	return nil
}

func (b *balanceSim) printFactors(w io.Writer, r *experiments.BalanceResult) error {
	for i := range b.balance.Factors {
		f := &b.balance.Factors[i]
		m := f.Machine
		title := fmt.Sprintf("Experiment 1, %s. Otherwise %g cores, %g GHz, %g GB, %g and %g Mb/s to network and disk, %d "+
			"URLs.\nSeconds, as predicted for a machine never seen, and what is in use nearly all the time", f.Name, m.Cores,
			m.GHz,
			m.MemoryGB, m.NetworkMbps, m.DiskMbps, f.URLs)
		err := grid(w, title, func(tab io.Writer) {
			fmt.Fprintf(tab, "%s\t", f.Name)
			for _, p := range b.balance.Programs {
				fmt.Fprintf(tab, "%s: seconds\tpredicted\tlimit\t", p.Name)
			}
			fmt.Fprintln(tab)
			for _, v := range f.Values {
				fmt.Fprintf(tab, "%g %s\t", v, f.Unit)
				for k := range r.Factors {
					if row := &r.Factors[k]; row.Factor == i && row.Value == v {
						mean, deviation := row.Mean()
						fmt.Fprintf(tab, "%.1f ± %.1f\t%.1f\t%s\t", mean, deviation, row.Predicted, row.Limit())
					}
				}
				fmt.Fprintln(tab)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *balanceSim) printSplits(w io.Writer, r *experiments.BalanceResult) error {
	title := fmt.Sprintf("Experiment 2: %d URLs split among the five nodes of the paper: URLs, and seconds that each "+
		"node takes; whole runs.\nThe paper had 134 s by 233 s, a ratio of 0.575. Best is the shortest run by true times",
		b.balance.URLs)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprint(tab, "program\tsplit\t")
		for i := range b.balance.Nodes {
			fmt.Fprintf(tab, "node %d\t", i+1)
		}
		fmt.Fprintln(tab, "run\tpredicted\ttail\tby even\t")
		for i := range r.Splits {
			s := &r.Splits[i]
			fmt.Fprintf(tab, "%s\t%s\t", s.Program, s.Way)
			for node, n := range s.Counts {
				fmt.Fprintf(tab, "%d: %.0f s\t", n, s.Mean(node))
			}
			fmt.Fprintf(tab, "%.1f s\t%.1f s\t%s\t%.3f\t\n", s.Run, s.Promised, percent(s.Tail), s.Ratio)
		}
	})
}

func (b *balanceSim) printSwarm(w io.Writer, r *experiments.BalanceResult) error {
	title := "Experiment 3: random clusters, 100 URLs a node: whole runs by the shortest one, and what a split takes"
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprint(tab, "nodes\tclusters\tsplit\tmean\tworst\ttimes evaluated a node\t")
		if b.cost {
			fmt.Fprint(tab, "µs\t")
		}
		fmt.Fprintln(tab)
		for _, s := range r.Swarm {
			fmt.Fprintf(tab, "%d\t%d\t%s\t%.3f\t%.3f\t%.0f\t", s.Nodes, s.Clusters, s.Way, s.Mean, s.Worst, s.Evaluations)
			if b.cost {
				fmt.Fprintf(tab, "%.0f\t", float64(s.Cost.Nanoseconds())/1000)
			}
			fmt.Fprintln(tab)
		}
	})
}

func (b *balanceSim) printVariance(w io.Writer, r *experiments.BalanceResult) error {
	title := "Experiment 3: 100 URLs for nodes that take n, n and 80n seconds"
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "split\tn\tn\t80n\tdeviation of times\trun\t")
		for _, v := range r.Variance {
			fmt.Fprintf(tab, "%s\t%d\t%d\t%d\t%.1f s\t%.0f s\t\n", v.Way, v.Counts[0], v.Counts[1], v.Counts[2], v.Deviation,
				v.Seconds)
		}
	})
}

func (b *balanceSim) printCurve(w io.Writer, r *experiments.BalanceResult) error {
	title := fmt.Sprintf("Experiment 4: after so many samples of the five nodes, means of %d models. Errors are of "+
		"logarithms: 0.1 is about 10 %%", b.balance.Models)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "program\tsamples\tbasis\terror, held back\terror, fresh\trun\tby the shortest\tworst\t")
		for _, c := range r.Curve {
			held := "-"
			if !math.IsNaN(c.HeldBack) {
				held = fmt.Sprintf("%.3f", c.HeldBack)
			}
			fmt.Fprintf(tab, "%s\t%d\t%v\t%s\t%.3f\t%.1f s\t%.3f\t%.3f\t\n", c.Program, c.Samples, c.Basis, held, c.Error, c.Run,
				c.Longer, c.Worst)
		}
	})
}

func (b *balanceSim) printWhole(w io.Writer, r *experiments.BalanceResult) error {
	title := "Experiment 4: a cold start. Each run has a sample for each node, which the next one knows"
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprintln(tab, "program\trun\tsamples\tbasis\tsplit\terror\trun\tby the shortest\t")
		for _, c := range r.Whole {
			fmt.Fprintf(tab, "%s\t%d\t%d\t%v\t%v\t%.3f\t%.1f s\t%.3f\t\n", c.Program, c.Number, c.Samples, c.Basis, c.Counts,
				c.Error, c.Run, c.Longer)
		}
	})
}

func (b *balanceSim) printCrawls(w io.Writer, r *experiments.BalanceResult) error {
	if len(r.Crawls) == 0 {
		return nil
	}
	title := fmt.Sprintf("Experiment 5: %d hosts of %d pages in the mean; a delay of %v in the mean. Pages of each node, "+
		"and how busy it was", b.balance.Crawl.Hosts, b.balance.Crawl.Pages, b.balance.Crawl.Delay)
	return grid(w, title, func(tab io.Writer) {
		fmt.Fprint(tab, "strategy\t")
		for i, slow := range b.balance.Crawl.Slowness {
			fmt.Fprintf(tab, "node %d (1/%g)\t", i+1, slow)
		}
		fmt.Fprintln(tab, "run\tshortest\ttail\tby shard\thosts moved\tstrategies' messages a page\tlinks'\tall\tlog "+
			"entries\t")
		for i := range r.Crawls {
			c := &r.Crawls[i]
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

func printBalanceJudgement(w io.Writer, all []experiments.BalanceStatement) {
	fmt.Fprintln(w, "\nWhat the paper states, and in experiment 5 what kumo is to do. Changes are ± two standard errors.")
	var told []results.Statement
	for _, s := range all {
		of := fmt.Sprintf("experiment %d", s.Experiment)
		if s.Program != "" {
			of += ", program " + s.Program
		}
		told = append(told, results.Statement{Of: of, Seen: s.Seen, Statement: s.Text, Measured: s.Numbers, Why: s.Why})
	}
	printStatements(w, told)
}
