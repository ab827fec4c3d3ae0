package main

import "github.com/spf13/cobra"

const simLong = `Try out, on one machine and without a network, what a crawl and a cluster do.

The strategies by which nodes share the hosts of the web among them run here as they are: it is the code of a crawl, with
made-up hosts, made-up nodes and, where time matters, a clock that does not wait. So an answer that would take a hundred machines
comes within seconds, and the same flags give the same answer, on any machine: what a random choice decides comes from --seed.

  kumo sim hash       how evenly Igloo's two-level hash spreads hosts, and how many move when a node comes or goes
  kumo sim soak       whether a cluster loses nothing, and stays polite, whatever fails
  kumo sim dspider    DSpider's experiments with a control unit again, and how many nodes one can serve
  kumo sim mesh       the experiments of a crawler without a centre again, and what it costs as it grows
  kumo sim balance    the experiments of balancing by predicted times again, and what samples are worth
  kumo sim rank       which order of what waits finds the important pages soonest`

func simCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "sim", Short: "Try out what crawls and clusters do", Long: simLong,
		Args: cobra.ArbitraryArgs, RunE: noVerb, DisableFlagsInUseLine: true}
	cmd.AddCommand(simHash(), simSoak(), simDSpider(), simMesh(), simBalance(), simRank())
	return cmd
}
