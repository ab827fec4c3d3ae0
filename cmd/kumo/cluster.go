package main

import "github.com/spf13/cobra"

const clusterLong = `Try a cluster out on this machine.

  kumo cluster demo       see five nodes crawl a made-up web, one of them killed and one joining meanwhile

docs/cluster.md says how to run one: kumo node, start, status, add, set, pause, resume, stop and secret.`

func clusterCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Try a cluster out on this machine", Long: clusterLong,
		Args: cobra.ArbitraryArgs, RunE: noVerb, DisableFlagsInUseLine: true}
	cmd.AddCommand(clusterDemo())
	return cmd
}
