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

const clusterLong = `Try a cluster out on this machine.

  kumo cluster demo       see five nodes crawl a made-up web, one of them killed and one joining meanwhile

docs/how-to/run-a-cluster-on-hosts.md says how to run one: kumo node, start, status, add, set, pause, resume, stop and secret.`

func clusterCommand() *cobra.Command {
	return withVerbs("cluster", "Try a cluster out on this machine", clusterLong, clusterDemo())
}

const clusterDemoLong = `Let several processes on this machine crawl a made-up web together, and see what becomes of it when one of them is killed and
another one joins: no network is needed, and nothing leaves this machine.

Three of the nodes run the cluster's servers. The last one joins when the crawl is under way; then one of the first is killed (SIGKILL), with
its server. The others notice when its lease ends, some 16 seconds later, and take over what it had. In the end the servers of
the made-up web say what they saw. The exit code is 0 only if all that can be reached was fetched, and no host saw more than one request at
a time, nor two sooner than its delay. What each node said is in its log.

With --strategy hub each node is kept from half of the hosts (--apart), and each host goes to one that reaches it, as the control unit decides; it is
the control unit that is killed. With --strategy balance it is the master.

With --ui each node serves the web page of its view of the crawl: how the cluster does, its hosts, URLs and pages.

With --strategy mesh there are eight nodes, no server, and none that is special: one joins, two leave, two are killed, one of them with its
folder.`

func clusterDemo() *cobra.Command {
	d := &clusterdemo.Demo{Settings: clusterdemo.Settings{Strategy: "shard", PageOf: demoPage,
		Environment: func(s secret.Secret) []string { return append(serviceVariables(), secretVariable+"="+s.Text()) }}}
	web := webFlags{}
	cmd := &cobra.Command{Use: "demo", Short: "See several nodes crawl a made-up web on this machine",
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
	f.Var(setting.Choice(&d.Strategy, cluster.Strategies()), "strategy", "how hosts are shared among the nodes")
	f.Float64Var(&d.UnreachableShare, "apart", 0.5, "with hub: keep each node from this `SHARE` of the hosts, 0 to 0.9; two of "+
		"the first nodes reach each host")
	durationVar(f, &d.Delay, "delay", 300*time.Millisecond, "wait this long from the end of an answer to the next "+
		"request to that host (with hub 200ms)")
	f.StringVarP(&d.Out, "out", "o", "crawls/cluster-demo", "a folder for the nodes' folders and logs; what an earlier "+
		"demo left there is removed")
	f.BoolVar(&d.UI, "ui", false, "serve each node's web page on a free port of 127.0.0.1, and say where")
	f.BoolVar(&d.NoToken, "ui-no-token", false, "with --ui: let every user of this machine in")
	durationVar(f, &d.Timeout, "time-limit", 75*time.Second, "give up after this time")
	return cmd
}

func checkDemo(d *clusterdemo.Demo, apart bool) error {
	switch {
	case d.Nodes < 4 || d.Nodes > 20:
		return usagef("--nodes is %d: 4 to 20 are possible", d.Nodes)
	case d.Mesh() && d.Nodes < clusterdemo.MinMeshNodes:
		return usagef("--nodes is %d: with the strategy mesh two of them leave and two are killed: %d to 20 are possible",
			d.Nodes, clusterdemo.MinMeshNodes)
	case apart && !d.Hub():
		return usagef("--apart: with the strategy %s it does not matter who reaches a host: try it with --strategy hub",
			d.Strategy)
	case !(d.UnreachableShare >= 0 && d.UnreachableShare <= 0.9):
		return usagef("--apart is %v: a share from 0 to 0.9 is possible", d.UnreachableShare)
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
