package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/secret"
	"kumo/internal/lab/clusterdemo"
)

const clusterLong = `Try a cluster on this machine, or maintain a running one.

  kumo cluster demo             five nodes crawl a synthetic web; one is killed, and another joins
  kumo cluster drain NODE       have a node hand over its hosts, leave and end
  kumo cluster servers          list the cluster's servers and their state
  kumo cluster replace-server   replace one of the servers

docs/how-to/run-a-cluster-on-machines.md describes how to run a real one: kumo node, start, status,
add, set, pause, resume, stop and secret.`

func clusterCommand() *cobra.Command {
	return withVerbs("cluster", "Try a cluster on this machine, or maintain one", clusterLong, clusterDemo(),
		clusterDrain(), clusterServerList(), clusterReplace())
}

const clusterDemoLong = `Crawl a synthetic web with several processes on this machine, while one is killed and another
joins. No network is needed, and nothing leaves this machine.

Three of the nodes run the cluster's servers. The last node joins during the crawl. Then one of the
first is killed (SIGKILL) with its server. The others notice when its lease ends, some 16 seconds
later, and take over its work. At the end, the score of the synthetic web's servers is printed. The
exit code is 0 only if every reachable URL was fetched, and no host got concurrent requests, or
requests sooner than its delay. Each node writes a log.

With --strategy hub, half of the hosts are unreachable for each node (--apart), and the control unit
assigns each host to a node that reaches it; the control unit is killed. With --strategy balance,
the master is killed. With --strategy hub/paper nodes fetch from a host before it is assigned, so two
nodes may send requests to one host; that is counted and explained, and is no failure.

With --ui each node serves a web page with its view of the crawl: the cluster, hosts, URLs and
pages.

With --strategy mesh there are eight equal nodes and no servers. One node joins, two leave, and two
are killed, one of them with its folder.`

func clusterDemo() *cobra.Command {
	d := &clusterdemo.Demo{Settings: clusterdemo.Settings{Strategy: "shard", PageOf: demoPage,
		Environment: func(s secret.Secret) []string { return append(serviceVariables(), secretVariable+"="+s.Text()) }}}
	web := webFlags{}
	cmd := &cobra.Command{Use: "demo", Short: "Crawl a synthetic web with several nodes on this machine",
		Long: clusterDemoLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.W = cmd.OutOrStdout()
			if d.Mesh() && !cmd.Flags().Changed("nodes") {
				d.Nodes = clusterdemo.MeshNodes
			}
			if err := checkDemo(d, cmd.Flags().Changed("apart")); err != nil {
				return err
			}
			if err := checkFolder("--out", d.Out); err != nil {
				return err
			}
			if d.Hub() && !cmd.Flags().Changed("delay") {
				d.Delay = clusterdemo.HubDelay
			}
			d.Web = web.config()
			d.Start = func(ctx context.Context, control admin.Client, seeds []string) error {
				return startDemo(ctx, control, d.Delay, seeds)
			}
			err := d.Run(cmd.Context())
			if foreign := clusterdemo.FolderError(""); errors.As(err, &foreign) {
				return &usage{err}
			}
			return err
		}}
	web.bind(cmd, 40, 1500)
	f := cmd.Flags()
	f.IntVar(&d.Nodes, "nodes", 5, "run `N` nodes, 4 to 20 (with mesh 8)")
	f.Var(setting.Choice(&d.Strategy, cluster.Strategies()), "strategy", "strategy for sharing hosts among nodes")
	f.Float64Var(
		&d.UnreachableShare,
		"apart",
		0.5,
		"with hub: make this `SHARE` of hosts unreachable for each node, 0 to 0.9; two of "+
			"the first nodes reach each host",
	)
	durationVar(f, &d.Delay, "delay", 300*time.Millisecond, "time from the end of an answer to the next "+
		"request to that host (with hub 200ms)")
	f.StringVarP(&d.Out, "out", "o", "crawls/cluster-demo", "a folder for the nodes' folders and logs; an earlier "+
		"demo in it is removed")
	f.BoolVar(&d.UI, "ui", false, "serve each node's web page on a free port of 127.0.0.1, and print its URL")
	f.BoolVar(&d.NoToken, "ui-no-token", false, "with --ui: give access to every user of this machine")
	durationVar(f, &d.Timeout, "time-limit", 75*time.Second, "fail after this time")
	return cmd
}

func checkDemo(d *clusterdemo.Demo, apart bool) error {
	switch {
	case d.Nodes < 4 || d.Nodes > 20:
		return usagef("--nodes is %d: give 4 to 20", d.Nodes)
	case d.Mesh() && d.Nodes < clusterdemo.MinMeshNodes:
		return usagef("--nodes is %d: with strategy mesh two nodes leave and two are killed: give %d to 20",
			d.Nodes, clusterdemo.MinMeshNodes)
	case apart && !d.Hub():
		return usagef("--apart: with the strategy %s it does not matter who reaches a host: try it with --strategy hub",
			d.Strategy)
	case !(d.UnreachableShare >= 0 && d.UnreachableShare <= 0.9):
		return usagef("--apart is %v: give a share from 0 to 0.9", d.UnreachableShare)
	}
	return nil
}

func startDemo(ctx context.Context, control admin.Client, delay time.Duration, seeds []string) error {
	o := &options{}
	all := crawlFlags(o)
	args := []string{"--scope", "any", "--allow-private", "--ip-delay", "0", "--delay", delay.String(), "--contact",
		"https://example.org/demo"}
	if err := all.Parse(args); err != nil {
		return err
	}
	if err := o.readStart(ctx, all, seeds); err != nil {
		return err
	}
	return control.Start(ctx, o.sharedSettings(all), o.Job.Seeds)
}

func demoPage(dir string) (url, link string) {
	n, err := readUIRecord(dir)
	if err != nil || n.URL == "" {
		return "", ""
	}
	return n.URL, n.link()
}
