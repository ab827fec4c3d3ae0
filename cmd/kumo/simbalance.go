package main

import (
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/lab/sim/report"
)

const simBalanceLong = `Make the experiments again by which Zhang, Tan, Chen and Lü (2019) judged their balancing by predicted times, in virtual time,
and some that they did not make.

  1  What each figure of a machine, and the number of URLs, does to the time of a piece: cores, clock, memory, network, disk
  2  500 URLs split among five nodes: evenly, as the paper did, by its particle swarm, by the shortest run
  3  The swarm against the shortest run on random clusters, and where the least variance is a long run
  4  What samples are worth: errors and whole runs after 0 to 500 of them, and from run to run of a cold start
  5  A crawl of 10,000 hosts, each left alone for 2 s after a request, by three nodes of which one is two times slower than the first,
     and one four times: --strategy shard against --strategy balance. And again while the first becomes eight times slower

Two programs fetch each piece on a made-up machine: "paper", one process like the paper's, and "kumo". Predictions and splits are the
code of a crawl, --strategy balance. Each of the paper's statements is judged by the numbers: seen, or not seen, and why.

The same flags give the same bytes on one kind of processor, but for --cost. docs/decisions/balance-sim.md has the results.`

const simBalanceExample = `  kumo sim balance                  # the tables and what is seen, in less than a minute
  kumo sim balance --out balance    # and CSV, and pictures as SVG`

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
	return b.out.runs(cmd, b.check, b.run)
}

func (b *balanceSim) check(*cobra.Command) error {
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
