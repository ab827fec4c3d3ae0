package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kumo/internal/app/admin"
	"kumo/internal/app/inspect"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/base/secret"
	"kumo/internal/lab/synthweb"
)

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

// A clusterShow is kumo cluster demo.
type clusterShow struct {
	web      webFlags
	nodes    int
	strategy string
	apart    float64 // share of the hosts that a node does not reach
	out      string
	ui       bool
	noToken  bool // of the nodes' web pages
	delay    time.Duration
	most     time.Duration // it may take

	w       io.Writer
	server  *synthweb.Server
	made    *synthweb.Web
	secret  secret.Secret
	servers []string
	procs   []*demoNode
	begun   time.Time // of the crawl
	before  string    // the last line on members
	control string    // the control unit, as it was seen last
	said    time.Time // when the last line was
}

func clusterDemo() *cobra.Command {
	d := &clusterShow{strategy: "shard"}
	cmd := &cobra.Command{Use: "demo", Short: "See several nodes crawl a made-up web on this machine",
		Long: clusterDemoLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d.w = cmd.OutOrStdout()
			if d.mesh() && !cmd.Flags().Changed("nodes") {
				d.nodes = meshNodes
			}
			if err := d.check(cmd.Flags().Changed("apart")); err != nil {
				return err
			}
			if d.hub() && !cmd.Flags().Changed("delay") {
				d.delay = hubDelay
			}
			return d.run(cmd.Context())
		}}
	d.web.bind(cmd, 40, 1500)
	f := cmd.Flags()
	f.IntVar(&d.nodes, "nodes", 5, "run `N` nodes, 4 to 20 (with mesh 8)")
	f.Var(setting.Choice(&d.strategy, cluster.Strategies()), "strategy", "how hosts are shared among the nodes")
	f.Float64Var(&d.apart, "apart", 0.5, "with hub: keep each node from this `SHARE` of the hosts, 0 to 0.9; two of "+
		"the first nodes reach each host")
	durationVar(f, &d.delay, "delay", 300*time.Millisecond, "wait this long from the end of an answer to the next "+
		"request to that host (with hub 200ms)")
	f.StringVarP(&d.out, "out", "o", "crawls/cluster-demo", "a folder for the nodes' folders and logs; what an earlier "+
		"demo left there is removed")
	f.BoolVar(&d.ui, "ui", false, "serve each node's web page on a free port of 127.0.0.1, and say where")
	f.BoolVar(&d.noToken, "ui-no-token", false, "with --ui: let every user of this machine in")
	durationVar(f, &d.most, "time-limit", 75*time.Second, "give up after this time")
	return cmd
}

// check refuses what cannot be shown.
func (d *clusterShow) check(apart bool) error {
	switch {
	case d.nodes < 4 || d.nodes > 20:
		return usagef("--nodes is %d: 4 to 20 are possible", d.nodes)
	case d.mesh() && d.nodes < leastMesh:
		return usagef("--nodes is %d: with the strategy mesh two of them leave and two are killed: %d to 20 are possible",
			d.nodes, leastMesh)
	case apart && !d.hub():
		return usagef("--apart: with the strategy %s it does not matter who reaches a host: try it with --strategy hub",
			d.strategy)
	case !(d.apart >= 0 && d.apart <= 0.9):
		return usagef("--apart is %v: a share from 0 to 0.9 is possible", d.apart)
	}
	return nil
}

// fates says what became of nodes.
func (d *clusterShow) fates() string {
	if d.mesh() {
		return "2 left, 2 killed"
	}
	return "1 killed"
}

// listening is how many nodes listen at an address that is known before.
func (d *clusterShow) listening() int {
	if d.mesh() {
		return d.nodes
	}
	return 3
}

// hubDelay makes up for the time that it takes to find out who reaches the hosts of the node that is killed.
const hubDelay = 200 * time.Millisecond

func (d *clusterShow) hub() bool { return strings.HasPrefix(d.strategy, "hub") }

// run shows all.
func (d *clusterShow) run(ctx context.Context) (err error) {
	if err := checkFolder("--out", d.out); err != nil {
		return err
	}
	if err := clearDemo(d.out); err != nil {
		return err
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, d.most, fmt.Errorf("the demo has taken longer than %v: what the nodes "+
		"said is in %s", d.most, filepath.Join(d.out, "*.log")))
	defer cancel()
	d.made = synthweb.New(d.web.config())
	d.server, err = synthweb.Serve(ctx, d.made, synthweb.ServeOptions{DNS: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.server.Close()) }()
	d.server.Score() // its truth takes a moment to compute
	d.secret = secret.New()
	if d.servers, err = freeAddresses(d.listening()); err != nil {
		return err
	}
	defer d.end()
	crawl := d.crawl
	if d.mesh() {
		crawl = d.crawlMesh
	}
	if err := crawl(ctx); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return d.judge(time.Since(begun))
}

// crawl has the nodes crawl.
func (d *clusterShow) crawl(ctx context.Context) (err error) {
	for range d.nodes - 1 {
		if err := d.startNode(); err != nil {
			return err
		}
	}
	o := cluster.NodeOptions{Join: d.servers, Secret: d.secret}
	control, err := cluster.OpenClient(ctx, demoCrawl, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, control.Close()) }()
	if err := d.start(ctx, control); err != nil {
		return err
	}
	d.begun = time.Now()
	d.say("the crawl begins: %d nodes, 3 of them with servers, %s", d.nodes-1, d.server.SeedURLs()[0])
	for _, part := range []func(context.Context, admin.Client) error{d.formed, d.joined, d.killed, d.ended} {
		if err := part(ctx, control); err != nil {
			return err
		}
	}
	return nil
}

const demoCrawl = "demo"

// start is kumo start.
func (d *clusterShow) start(ctx context.Context, control admin.Client) error {
	o := &options{}
	all := crawlFlags(o)
	args := []string{"--scope", "any", "--allow-private", "--ip-delay", "0", "--delay", d.delay.String(), "--contact",
		"https://example.org/demo"}
	if err := all.Parse(args); err != nil {
		return err
	}
	if err := o.readStart(ctx, all, d.server.SeedURLs()); err != nil {
		return err
	}
	return control.Start(ctx, o.shared(all), o.Job.Seeds)
}

// formed waits until the first nodes are members.
func (d *clusterShow) formed(ctx context.Context, control admin.Client) error {
	return d.until(ctx, control, func(c *inspect.Cluster) bool { return c.Settled && members(c) == d.nodes-1 })
}

// joined has the last node join.
func (d *clusterShow) joined(ctx context.Context, control admin.Client) error {
	if err := d.startNode(); err != nil {
		return err
	}
	d.say("%s joins", d.procs[len(d.procs)-1].name)
	return d.until(ctx, control, func(c *inspect.Cluster) bool { return c.Settled && members(c) == d.nodes })
}

// killed kills a node that runs a server: the control unit, if it does.
func (d *clusterShow) killed(ctx context.Context, control admin.Client) error {
	victim, what := d.procs[1], ""
	if i := slices.IndexFunc(d.procs[:len(d.servers)], func(p *demoNode) bool { return p.name == d.control }); i >= 0 {
		victim, what = d.procs[i], ", the "+(&inspect.Cluster{Strategy: d.strategy}).LeaderWord()+","
	}
	if err := victim.kill(); err != nil {
		return err
	}
	d.say("%s%s is killed, with the server that it ran", victim.name, what)
	return d.until(ctx, control, func(c *inspect.Cluster) bool { return c.Settled && members(c) == d.nodes-1 })
}

// ended waits until the crawl is done and its processes have ended.
func (d *clusterShow) ended(ctx context.Context, control admin.Client) error {
	if err := d.until(ctx, control, func(c *inspect.Cluster) bool { return c.State == "done" }); err != nil {
		return err
	}
	for _, p := range d.procs {
		if err := p.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func members(c *inspect.Cluster) (n int) {
	for i := range c.Nodes {
		if c.Nodes[i].Is == inspect.NodeMember {
			n++
		}
	}
	return n
}

// until looks at the cluster until it is as wanted, and says what changes.
func (d *clusterShow) until(ctx context.Context, control admin.Client, wanted func(*inspect.Cluster) bool) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		if c, err := control.Look(ctx, demoCrawl); err == nil {
			d.follow(c)
			d.sayPages()
			if wanted(c) {
				return nil
			}
		}
		for _, p := range d.procs {
			if err := p.failed(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// follow says what has changed, and from time to time how it goes.
func (d *clusterShow) follow(c *inspect.Cluster) {
	line := membersLine(c)
	switch {
	case len(c.Nodes) > 0 && line != d.before:
		d.before = line
		d.say("%s", line)
	case time.Since(d.said) >= 5*time.Second:
		d.say("%.0f pages/s, %d URLs wait%s", c.Totals.Rate, c.Totals.Waiting, ownedWords(c))
	}
	d.control = c.Control
}

// sayPages says where nodes' web pages are, as they come.
func (d *clusterShow) sayPages() {
	for _, p := range d.procs {
		if !d.ui || p.page != "" {
			continue
		}
		if n, err := readNote(d.folderOf(p)); err == nil && n.URL != "" {
			p.page = n.URL
			d.say("the web page of %s is %s", p.name, n.link())
		}
	}
}

// ownedWords says how many hosts each node was given, where a control unit does that.
func ownedWords(c *inspect.Cluster) string {
	var each []string
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Facts == nil || n.Is != inspect.NodeMember {
			continue
		}
		words := fmt.Sprintf("%s %d", n.Name, n.Owned)
		if n.Parked > 0 {
			words += fmt.Sprintf(" (%d parked)", n.Parked)
		}
		each = append(each, words)
	}
	if each == nil {
		return ""
	}
	return "; hosts: " + strings.Join(each, ", ")
}

// membersLine says who is what.
func membersLine(c *inspect.Cluster) string {
	by := map[inspect.Standing][]string{}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		by[n.Is] = append(by[n.Is], n.Name)
	}
	line := fmt.Sprintf("members: %s", strings.Join(by[inspect.NodeMember], " "))
	for _, is := range []inspect.Standing{inspect.NodeJoining, inspect.NodeLeaving, inspect.NodeDead} {
		if len(by[is]) > 0 {
			line += fmt.Sprintf("; %s: %s", is, strings.Join(by[is], " "))
		}
	}
	if !c.Settled {
		line += "; hosts change owner"
	}
	if c.Control != "" {
		line += "; " + c.LeaderWord() + ": " + c.Control
	}
	return line
}

// say says what happens, and when.
func (d *clusterShow) say(format string, args ...any) {
	d.said = time.Now()
	fmt.Fprintf(d.w, "%5.1fs  %5d requests  %s\n", time.Since(d.begun).Seconds(), d.server.Requests(),
		fmt.Sprintf(format, args...))
}

// judge says what the servers of the web saw, and returns an error unless it is as it should be.
func (d *clusterShow) judge(took time.Duration) error {
	s := d.server.Score()
	fmt.Fprintf(d.w, "\nWhat the servers saw:\n%s\nThe nodes' folders and logs are in %s.\n", s, d.out)
	faults := demoFaults(&s, d.delay)
	verdict := "politeness held"
	if len(faults) > 0 {
		verdict = strings.Join(faults, ", ")
	}
	fmt.Fprintf(d.w, "%d nodes, 1 joined, %s: %d of %d reachable URLs fetched, %d fetched again, %s, gap at "+
		"least %v, %.0f s\n",
		d.nodes, d.fates(), s.Covered, s.Truth, s.Repeats+s.RepeatsOther, verdict, s.LeastGap.Value.Round(time.Millisecond),
		took.Seconds())
	if len(faults) > 0 {
		return fmt.Errorf("the crawl is not as it should be: %s", strings.Join(faults, ", "))
	}
	return nil
}

// demoFaults are what the crawl did wrong. A delay is measured by the servers, on a machine that has other things to
// do.
func demoFaults(s *synthweb.Score, delay time.Duration) (faults []string) {
	count := func(n int64, what string) {
		if n > 0 {
			faults = append(faults, fmt.Sprintf("%d %s", n, what))
		}
	}
	count(int64(s.Missing), "missing")
	count(int64(s.Beyond)+s.Unknown, "that should not have been fetched")
	count(s.Forbidden, "forbidden by robots.txt")
	count(s.BeforeRobots, "before robots.txt")
	count(s.Hasty+s.Impatient, "sooner than asked for")
	count(int64(max(s.MostInFlight.Value-1, 0)), "too many at once")
	if s.LeastGap.Host != "" && s.LeastGap.Value < delay*9/10 {
		faults = append(faults, fmt.Sprintf("only %v between two requests to %s", s.LeastGap.Value, s.LeastGap.Host))
	}
	return faults
}

// demoMark is in the folder of a demo, and tells it from others.
const demoMark = "made-by-kumo-cluster-demo"

// clearDemo makes the demo's folder, empty.
func clearDemo(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == demoMark }) {
		return usagef("%s is there, and no earlier demo has made it: name another folder with --out", dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, demoMark), nil, 0o644)
}
