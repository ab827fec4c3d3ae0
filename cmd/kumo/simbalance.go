package main

import (
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simBalanceLong = `Repeat the experiments with which Zhang, Tan, Chen and Lü (2019) evaluated balancing by
predicted time, in virtual time, and some additional ones.

  1  The effect of each property of a machine, and of the number of URLs, on the time of a batch:
     cores, clock, memory, network, disk
  2  500 URLs split among five nodes: evenly, as in the paper's table, by --strategy balance/paper, by its
     particle swarm with the network of --strategy balance, by the shortest run
  3  The swarm against the shortest run on random clusters, and a case in which the least variance
     is a long run
  4  The value of samples: errors and whole runs after 0 to 500 of them, and from run to run after
     a cold start; with balance, and for the first with balance/paper
  5  A crawl of 10,000 hosts with a delay of 2 s, by three nodes, of which the second is two times
     and the third four times slower than the first: --strategy shard, balance and balance/paper.
     Then the same while the first becomes eight times slower

Two programs fetch each batch on a synthetic machine: "paper", one process as in the paper, and
"kumo". Predictions and splits are the code of these strategies. Each statement of the paper is
compared with the numbers: seen or not seen, and why.

The same flags give the same bytes on one kind of processor, except with --cost. The results are in
docs/decisions/balance-sim.md.`

const simBalanceExample = `  kumo sim balance                  # the tables and what is seen, in less than a minute
  kumo sim balance --out balance    # and CSV, and pictures as SVG`

type balanceSim struct {
	balance experiments.Balance
	paper   learningFlags
	cost    bool
	out     simFolder
}

func simBalance() *cobra.Command {
	b := balanceSim{balance: experiments.BalanceOfPaper(), paper: newLearningFlags()}
	cmd := &cobra.Command{Use: "balance", Short: "Repeat experiments on balancing by predicted time",
		Long: simBalanceLong, Example: simBalanceExample, Args: cobra.NoArgs}
	f := cmd.Flags()
	b.out.bind(f, "tables as CSV and plots as SVG")
	f.Uint64Var(&b.balance.Seed, "seed", b.balance.Seed, "`NUMBER` of the seed")
	f.IntVar(&b.balance.Runs, "runs", b.balance.Runs, "fetch each batch `K` times, with other pages; tables show the mean")
	f.IntVar(&b.balance.Models, "models", b.balance.Models, "train `K` models on different samples; tables "+
		"show the mean")
	f.IntVar(&b.balance.Crawl.Hosts, "hosts", b.balance.Crawl.Hosts,
		"crawl a web of `N` hosts in experiment 5; 0 skips it")
	b.paper.bind(f, "; experiments 2 and 4")
	f.BoolVar(&b.cost, "cost", false, "measure the time of a split")
	f.SortFlags = false
	return b.out.runs(cmd, b.check, b.run)
}

func (b *balanceSim) check(*cobra.Command) error {
	paper, err := b.paper.learning()
	if err != nil {
		return err
	}
	p := &b.balance.Paper
	p.Hidden, p.Rate, p.Threshold = paper.Hidden, paper.Rate, paper.Threshold
	switch c := &b.balance; {
	case c.Seed < 1:
		return usagef("--seed must be 1 or more")
	case c.Runs < 2 || c.Runs > 1000:
		return usagef("--runs is %d: from 2 to 1000 are possible", c.Runs)
	case c.Models < 1 || c.Models > 1000:
		return usagef("--models is %d: from 1 to 1000 are possible", c.Models)
	case c.Crawl.Hosts == 0:
		c.Crawl.Strategies = nil
	case c.Crawl.Hosts < 10 || c.Crawl.Hosts > 100_000:
		return usagef("--hosts is %d: 0, or from 10 to 100000 are possible", c.Crawl.Hosts)
	}
	return nil
}

func (b *balanceSim) run(cmd *cobra.Command) error {
	if b.cost {
		b.balance.Now = time.Now
	}
	r, err := withProgress(cmd, b.balance.Run)
	if err != nil {
		return err
	}
	return report.Balance(cmd.OutOrStdout(), &b.out.Folder, &b.balance, &r)
}
