package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/desired"
	"kumo/internal/content/policy"
	"kumo/internal/view/progress"
	"kumo/internal/view/telemetry"
)

const nodeLong = `Run one node of a crawl that several nodes share. It joins the others, waits for kumo start, crawls
its own hosts, and stores pages in a folder like that of kumo crawl.

Without --crawl, the node takes part in all crawls of its cluster: each that kumo start adds, until kumo
stop. Each crawl has a folder in that of the node. See docs/how-to/run-several-crawls.md.

The first node creates the cluster, and the others name it with --join. Without --listen, it serves
only processes of this machine, at ` + defaultAddress + `. Between machines, a secret is required: kumo
secret new.

With --servers 3 (or 5), the crawl continues without losing URLs if one (or two) of these machines are
lost with their disks. The first three (or five) addresses in --join, the same on all nodes, are the nodes
that run servers. They are fixed when the cluster is created. A server listens on two ports: that of
--listen for nodes, and the next one for other servers. Pages are on the disk of the node that fetched
them.

With -o s3://bucket/prefix (or hdfs://, file://), record files are uploaded when they are closed, to a new
path for each session, s3://bucket/prefix/NAME~LIFE; the node's folder is --work. Uploaded records survive
the loss of the node's disk; other nodes fetch pages without uploaded records again. See
docs/how-to/keep-pages-of-lost-nodes.md.

With --strategy mesh, no node runs a server, and any node may be the first, or disappear. --join names any
running node; a node that has met others no longer needs it. A node listens on TCP and UDP at port 7070,
or at --listen.

After Ctrl-C, or SIGTERM, the node hands its work over to the others, and leaves. A node with the only
server just exits, and the others wait for its return. A second signal ends the node at once. After
kill -9 or a power cut, the same command resumes; if the others have taken over, it starts as a new node.
kumo stop stops all nodes, which keep their place for the same commands.`

const nodeExample = `  # two nodes on this machine; each command in a terminal of its own
  kumo node --crawl news
  kumo node --crawl news --name b --join 127.0.0.1:7070
  kumo start --crawl news https://example.com/

  # a node of all crawls of this machine's cluster
  kumo node

  # one of three nodes that run servers
  kumo node --crawl news --secret-file cluster.secret --servers 3 \
    --listen a.internal:7070 --join a.internal:7070,b.internal:7070,c.internal:7070

  # a further node, which uploads its record files
  kumo node --crawl news --name c --secret-file cluster.secret --join a.internal:7070 \
    -o s3://bucket/news --keep-local=false

  # without servers; the first node prints the command for the others
  kumo node --crawl commons --strategy mesh --secret-file cluster.secret
  kumo node --crawl commons --strategy mesh --secret-file cluster.secret --join 10.0.0.1:7070`

// A nodeRunner has the flags of kumo node, and runs a node.
type nodeRunner struct {
	clusterFlags
	o          *options // the crawl settings that belong to a machine
	given      *pflag.FlagSet
	name       string
	listen     string
	servers    int
	preset     string
	place      string
	splitter   string
	hashBy     string
	learning   learningFlags
	slots      int
	reachLimit cluster.ConnectTimeout // with hub
	out        string
	onlyServer bool // this node runs the only server
	mesh       meshFlags
	filters    filters
	upload     atomic.Pointer[uploads.Upload] // upload of the last session; nil without one
	index      nodeIndex
	open       atomic.Pointer[openNode] // nil until the node has opened
}

// An openNode is a node that has connected to its cluster.
type openNode struct{ cluster.Node }

// meshFlags are the flags of a mesh node.
type meshFlags struct {
	backups   int
	reach     string
	noLAN     bool
	lostAfter time.Duration
	private   bool // allow private addresses if other members ask for them
	// whether cookies move with their host
	shareCookies bool
	// with mesh/paper; 0: as the other nodes, or computed
	blockSize    int
	balanceEvery time.Duration
	workArea     int
}

func nodeCommand() *cobra.Command {
	n := &nodeRunner{o: &options{}, preset: "lan", place: "shard", learning: newLearningFlags(),
		mesh: meshFlags{reach: "auto"}}
	cmd := &cobra.Command{Use: "node [--crawl NAME] [flags]",
		Short: "Run a node of a crawl, or of all crawls of a cluster",
		Long:  nodeLong, Example: nodeExample, Args: cobra.NoArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n.given = cmd.Flags()
			return n.run(cmd.Context(), cmd.OutOrStdout())
		}}
	f := cmd.Flags()
	n.bind(f, "join the crawl at these `ADDR`esses, HOST:PORT, of nodes that run servers; "+
		"with mesh, of any node, also /dns4/… multiaddresses")
	f.Lookup("crawl").Usage = "the crawl's `NAME`: letters, digits, - and _ (default: all crawls of the cluster)"
	f.StringVar(&n.name, "name", "", "the node's `NAME`, unique in the crawl: letters, digits, - and _ "+
		"(default: this machine's)")
	f.StringVar(&n.listen, "listen", "", "run a server at `ADDR`, as others reach it, if it is one of the cluster's "+
		"(default without --join: "+defaultAddress+"); with mesh, listen there (default: port 7070, or any where that "+
		"is taken)")
	f.IntVar(&n.servers, "servers", 0, "the first `N` addresses in --join are those of all servers: 1, 3 or 5")
	f.Var(setting.Choice(&n.preset, cluster.Presets()), "preset", "network between the nodes; the same on all")
	f.Var(setting.Choice(&n.place, cluster.Strategies()), "strategy", "strategy for sharing hosts, the same on all nodes: "+
		"by a hash (shard), by reachability (hub), by predicted time (balance; by the method of a paper: "+
		"balance/paper), or by a hash and without servers (mesh)")
	f.Var(setting.Choice(&n.splitter, cluster.Splitters()), "splitter", "with balance: how to split pending URLs: "+
		"finish together (exact), evenly (even), by a hash (hash); the same on all (default exact)")
	f.Var(setting.Choice(&n.hashBy, cluster.HashKeys()), "hash-by", "with shard: hash each URL's host, its registered "+
		"domain, or the whole URL, for sites of your own; the same on all (default host)")
	durationVar(f, &n.reachLimit.Initial, "connect-timeout", 0, "with hub: abort a first connection to a host after "+
		"this time, and leave the host to other nodes (default 2s; with --preset wan 200ms)")
	// KUMO_CONNECT_TIMEOUT is a setting of the crawl
	f.Lookup("connect-timeout").Annotations = map[string][]string{noVariable: {"true"}}
	durationVar(f, &n.reachLimit.Min, "connect-timeout-min", 0, "with hub: lower bound of that time, which falls "+
		"while the node is busy (default: a quarter)")
	durationVar(f, &n.reachLimit.Max, "connect-timeout-max", 0, "with hub: upper bound of that time, which rises "+
		"while the node has little work (default: twice)")
	n.learning.bind(f, "; the same on all")
	f.IntVar(&n.slots, "slots", cluster.DefaultSlots, "plan for at most `M` nodes; the same on all")
	f.IntVar(&n.mesh.backups, "backups", cluster.DefaultBackups, "with mesh: `N` nodes store each host's known URLs; "+
		"the same on all")
	f.Var(setting.Choice(&n.mesh.reach, cluster.Reaches()), "reach", "with mesh: whether other nodes can connect to "+
		"this one; auto asks them")
	f.BoolVar(&n.mesh.noLAN, "no-lan", false, "with mesh: do not search the local network for nodes")
	durationVar(f, &n.mesh.lostAfter, "lost-after", cluster.DefaultLostAfter, "with mesh and a storage location: a node "+
		"absent for this long counts as lost with its disk, and pages that it had not uploaded are "+
		"fetched again")
	f.BoolVar(&n.mesh.private, "allow-private", false, "with mesh and a secret: visit private, loopback and link-local "+
		"addresses if the crawl's seeds or settings require it")
	f.BoolVar(&n.mesh.shareCookies, "share-cookies", false, "with mesh: a host's cookies move with it between the nodes "+
		"with this flag; any member can obtain them")
	f.IntVar(&n.mesh.blockSize, "block-size", 0, "with mesh/paper: load moves in blocks of `H` URLs; the same on all "+
		"(default: as the other nodes; 20 at the first)")
	durationVar(f, &n.mesh.balanceEvery, "balance-every", 0, "with mesh/paper: nodes compare their load every `T`; the "+
		"same on all (default: as the other nodes; 3m at the first)")
	f.IntVar(&n.mesh.workArea, "work-area", 0, "with mesh/paper: this node works on `N` blocks of URLs, and gives others "+
		"away (default: computed from its rates)")
	f.StringVarP(&n.out, "out", "o", "", "the node's folder (default: crawls/CRAWL, or crawls/CRAWL-NAME with "+
		"--name); or a `PLACE` to upload record files to, such as s3://bucket/prefix")
	borrow(f, crawlFlags(n.o), ofScope(setting.Node))
	f.SortFlags = false
	return withSettingsHelp(cmd)
}

func (n *nodeRunner) run(ctx context.Context, out io.Writer) (err error) {
	opts, err := n.resolve()
	if err != nil {
		return err
	}
	if n.crawl == "" {
		return n.runAll(ctx, out, &opts)
	}
	n.o.Job.Name = n.crawl + ", node " + n.name // title of the progress display
	show := n.o.newShow(os.Stderr)
	if show.live != nil {
		show.live.Hint("Ctrl-C hands this node's work to the others; kumo stop ends all")
	}
	exporter, err := openTelemetry(ctx, n.crawl, n.name, show)
	if err != nil {
		return err
	}
	defer closeTelemetry(exporter, show)
	j, err := n.prepare(ctx, show, exporter, &opts)
	if err != nil {
		return err
	}
	defer n.filters.close()
	defer func() { err = errors.Join(err, n.index.finish(ctx, out, n.o.Quiet)) }()
	if opts.Secret, err = readSecret(n.secretFile, func(s string) { show.log.Warn(s) }); err != nil {
		return err
	}
	limitMemory(n.o.Job.MemoryLimit())
	if cluster.IsMesh(n.place) {
		listenMesh(&opts)
	}
	if err := n.checkPlace(ctx, show); err != nil { // before a folder is created
		return err
	}
	page, err := crawlUI(n.o.UI).listen()
	if err != nil {
		return err
	}
	if page != nil {
		defer page.close()
		opts.Address = page.url()
	}
	n.printStart(show, &opts)
	stopMetrics, err := n.serveMetrics(ctx, show, exporter)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stopMetrics()) }()
	late := time.AfterFunc(lateJoin, func() { show.log.Warn(hint(&opts)) })
	one, err := cluster.OpenNode(ctx, j, opts)
	late.Stop()
	if err != nil && ctx.Err() != nil {
		return n.endError(context.Canceled, show)
	}
	if err != nil {
		return n.advise(err)
	}
	n.open.Store(&openNode{one})
	defer func() {
		closeTelemetry(exporter, show) // while the node is open
		n.open.Store(nil)
		err = errors.Join(err, one.Close())
	}()
	if a, may := one.(interface{ Addresses() []string }); may {
		n.printJoin(out, a.Addresses())
	}
	report, err := n.runCrawl(ctx, one, show, page)
	n.printReport(out, one, report)
	return n.advise(n.endError(err, show))
}

// prepare creates the job of a crawl, and completes the options of its node. The caller closes the filters.
func (n *nodeRunner) prepare(ctx context.Context, show *console, exporter *telemetry.Exporter,
	opts *cluster.NodeOptions) (j *job.Job, err error) {
	j = &job.Job{Name: n.crawl, Dir: n.out, Listener: exporter.Listener(show.listener()),
		Warn: func(err error) { show.log.Warn(err.Error()) }}
	opts.Log, opts.Browser = show.log, browserOf(n.o)
	n.filters, err = openFilters(ctx, &n.o.Filter, n.crawl, func(line string) { show.log.Warn(line) })
	if err != nil {
		return nil, err
	}
	opts.ApplySettings = func(j *job.Job, settings []settings.Setting) error {
		if err := n.o.resolveNode(n.given, j, settings); err != nil {
			return err
		}
		n.blockPrivate(j, opts)
		n.filters.addTo(j)
		n.index.addTo(j, n.o.Index && settings != nil, indexErrorLogger(show))
		return nil
	}
	opts.NewUploader, opts.ReadManifest, opts.PlaceWait = n.uploaderFactory(show), uploads.ReadManifest, n.o.PlaceWait
	opts.CopyState, opts.DropState = uploads.CopyState, uploads.DropState
	opts.NewSender = n.senderFactory(show, exporter)
	opts.Ending = func() { flushTelemetry(exporter, show) }
	return j, nil
}

func (n *nodeRunner) printReport(out io.Writer, one cluster.Node, report *stats.Report) {
	if report == nil || n.o.Quiet {
		return
	}
	report.Print(out)
	fmt.Fprintf(out, "  %-9s %s\n", "folder", n.out)
	if up := n.upload.Load(); up != nil {
		printUploads(out, up.Status())
	}
	for i := range report.Sinks {
		printSink(out, &report.Sinks[i])
	}
	if again := refetched(one); again > 0 {
		fmt.Fprintf(out, "  %-9s %s of lost nodes: their records had not been uploaded or sent\n", "again",
			stats.Count(again, "pages"))
	}
}

// lateJoin is the time after which a node that waits for others logs possible reasons.
const lateJoin = 5 * time.Second

func hint(o *cluster.NodeOptions) string {
	switch {
	case cluster.IsMesh(o.Strategy):
		return meshHint(o)
	case o.NATS != "":
		return "not joined yet: check the URL in --nats, and that this machine can reach it"
	case len(o.Servers) > 1:
		return fmt.Sprintf("not joined yet: a majority of the servers %s must run and reach each other, on the ports "+
			"named and the next ones", strings.Join(o.Servers, ", "))
	}
	return fmt.Sprintf("not joined yet: check that a node with a server runs at %s, the address, and the firewall",
		strings.Join(o.Join, ", "))
}

func (n *nodeRunner) resolve() (o cluster.NodeOptions, err error) {
	if n.crawl != "" {
		err = checkCrawlName(n.crawl)
	} else {
		err = n.checkAll()
	}
	if err != nil {
		return o, err
	}
	if err := n.checkJoin(); err != nil {
		return o, err
	}
	if err := n.resolvePlace(); err != nil {
		return o, err
	}
	n.resolveNames()
	if err := n.findPlace(); err != nil {
		return o, err
	}
	if node.CrawlWord(n.name) != n.name {
		return o, usagef("--name %q: use only letters, digits, - and _", n.name)
	}
	if n.reachLimit != (cluster.ConnectTimeout{}) && !strings.HasPrefix(n.place, "hub") {
		return o, usagef("--connect-timeout of a node is for --strategy hub, and this is %s: give it to kumo start",
			n.place)
	}
	if n.splitter != "" && n.place != "balance" {
		return o, usagef("--splitter is for --strategy balance, and this is %s", n.place)
	}
	learning, err := n.learning.learning()
	if err == nil && n.place != "balance/paper" {
		err = n.learning.checkUnused(n.given, n.place)
	}
	if err != nil {
		return o, err
	}
	if way, _, _ := strings.Cut(n.place, "/"); n.hashBy != "" && way != "shard" {
		return o, usagef("--hash-by is for --strategy shard, and this is %s", n.place)
	}
	if cluster.IsMesh(n.place) {
		return n.resolveMesh()
	}
	if err := n.checkNoMesh(); err != nil {
		return o, err
	}
	o = cluster.NodeOptions{Name: n.name, Listen: n.listen, Join: n.join, NATS: n.nats, Preset: n.preset,
		Strategy: n.place, Splitter: n.splitter, Learning: learning, HashBy: n.hashBy, Slots: n.slots,
		ConnectTimeout: n.reachLimit}
	switch {
	case n.nats != "" && len(n.join)+len(n.listen) > 0:
		return o, usagef("with --nats no node runs a server: remove --listen and --join")
	case n.nats != "":
		o.Replicas = n.servers
	default:
		o.Servers, err = serversOf(n.listen, n.join, n.servers)
	}
	if err != nil {
		return o, err
	}
	return o, n.checkRest()
}

// checkRest rejects the folder of another crawl and invalid settings of the machine at once, rather than when the crawl
// is started.
func (n *nodeRunner) checkRest() error {
	if n.crawl == "" {
		return n.checkRestOfAll()
	}
	if err := n.checkFolder(); err != nil {
		return err
	}
	return n.o.resolveNode(n.given, &job.Job{Name: n.crawl, Dir: n.out}, nil)
}

func (n *nodeRunner) resolveNames() {
	if n.out == "" {
		n.out = folder.DefaultDir(cmp.Or(n.crawl, allDir))
		if n.name != "" {
			n.out += "-" + n.name
		}
	}
	if n.name == "" {
		n.name = hostName()
	}
	if n.listen == "" && len(n.join) == 0 && n.nats == "" && !cluster.IsMesh(n.place) {
		n.listen = defaultAddress
	}
}

// checkFolder rejects the folder of another crawl.
func (n *nodeRunner) checkFolder() error {
	saved, err := folder.ReadSettings(n.out)
	if err != nil {
		return err
	}
	if name, has := settings.Map(saved)["name"]; has && !slices.Equal(name, []string{n.crawl}) {
		return usagef("%s belongs to the crawl %q, not to %q: name another folder with --out", n.out,
			strings.Join(name, ","), n.crawl)
	}
	return nil
}

func (n *nodeRunner) printStart(show *console, o *cluster.NodeOptions) {
	if cluster.IsMesh(n.place) {
		n.printMesh(show)
		return
	}
	serves := slices.Contains(o.Servers, o.Listen) && o.NATS == ""
	n.onlyServer = serves && len(o.Servers) == 1
	switch {
	case o.NATS != "" && o.Replicas < 3:
		show.log.Info("the NATS server keeps the cluster's data in one copy: if its disk is lost, so is the crawl; " +
			"--servers 3 keeps it on three of its servers")
	case n.onlyServer:
		show.log.Info("this is the cluster's only server: if its disk is lost, the crawl cannot resume, and pending URLs " +
			"on all nodes have to be found again; with --servers 3, one of three disks can be lost without losing a URL")
	case !serves && n.listen != "" && o.NATS == "":
		show.log.Info("this node runs no server: --listen is not a server address of the cluster", "listen", n.listen,
			"servers", strings.Join(o.Servers, ","))
	}
	if n.o.place == "" {
		show.log.Info("pages fetched by this node are only in its folder: back up warc/ regularly, or "+
			"start it with -o PLACE", "folder", n.out)
	}
	args := []any{"crawl", n.crawl, "node", n.name, "strategy", n.place, "preset", n.preset}
	if n.crawl == "" {
		args = []any{"crawls", "all of the cluster", "node", n.name, "preset", n.preset}
	}
	if serves {
		args = append(args, "listen", n.listen)
	}
	show.log.Info("joining", args...)
}

// runCrawl takes part in the crawl, with progress display and metrics. When ctx ends, the node leaves.
func (n *nodeRunner) runCrawl(ctx context.Context, one cluster.Node, show *console, page *uiPage) (report *stats.Report,
	err error) {
	g := errgroup.Group{}
	beside, done := context.WithCancel(context.WithoutCancel(ctx))
	status := func() progress.Status {
		if c := one.Session(); c != nil {
			s := liveStatus(c)
			s.Sinks = sinksOf(c)
			return s
		}
		return progress.Status{Time: time.Now()}
	}
	g.Go(func() error { show.run(beside, status); return nil })
	g.Go(func() error { notifyService(ctx, beside, show.log, status); return nil })
	g.Go(func() error { tuneCollector(beside); return nil })
	running, cut := context.WithCancel(beside)
	defer cut()
	leave := context.AfterFunc(ctx, func() { n.leave(beside, one, show, cut) })
	defer leave()
	if page != nil {
		src, err := n.source(show.log, one)
		if err != nil {
			done()
			return nil, errors.Join(err, g.Wait())
		}
		shown := runningIn(n.out)
		shown.Crawls[0].Cluster, shown.Crawls[0].Location = src, " of node "+n.name
		g.Go(func() error { return page.serve(beside, show.log, shown) })
	}
	report, err = one.Run(running)
	done()
	return report, errors.Join(err, g.Wait())
}

// leave starts the transfer of the node's work to others. If that is not possible, it ends the node with cut.
func (n *nodeRunner) leave(beside context.Context, one cluster.Node, show *console, cut func()) {
	if n.onlyServer {
		show.log.Info("ending: the other nodes, if any, wait for this node's server; kumo stop ends them all")
		cut()
		return
	}
	show.log.Info("leaving: handing this node's work over to the others; a second signal ends it at once, and " +
		"keeps its place")
	one.Leave()
	if !n.waitHandover(beside, one) {
		show.log.Warn("the cluster cannot be reached, so nothing can be handed over: this node ends and keeps its place")
		cut()
	}
}

// leavePatience is how long a leaving node without a lease waits for the cluster.
const leavePatience = 15 * time.Second

// waitHandover waits for a leaving node until ctx ends. It returns false if the node has held no lease for
// leavePatience, because the servers are unreachable.
func (n *nodeRunner) waitHandover(ctx context.Context, one cluster.Node) bool {
	since := time.Now()
	for now := range wait.Every(ctx, time.Second) {
		if one.Member() || one.Uploading() {
			since = now
		} else if now.Sub(since) > leavePatience {
			return false
		}
	}
	return true
}

// endError logs why the node has ended. It returns nil if the reason is not an error.
func (n *nodeRunner) endError(err error, show *console) error {
	if u, waits := errors.AsType[*session.IncompleteUpload](err); waits {
		return withPlace(n.endError(u.RunErr, show), adviseUploads(u.UploadErr))
	}
	if u, waits := errors.AsType[*session.IncompleteSending](err); waits {
		return n.withSinks(u, show)
	}
	switch {
	case err == nil:
		show.log.Info("the crawl is done")
	case errors.Is(err, policy.ErrLimit):
		show.log.Info(limitText(err))
	case errors.Is(err, node.ErrStopped):
		show.log.Info("stopped: the same command, and kumo start, resume it")
		return nil
	case errors.Is(err, node.ErrLeft):
		show.log.Info("left: the other nodes, if any, have taken over this node's work; its records stay where "+
			"they are", "folder", n.out, "place", n.o.place)
		return nil
	case errors.Is(err, context.Canceled):
		show.log.Info("ended: the same command resumes")
		return nil
	}
	return err
}

// limitText describes the limit that the crawl has reached.
func limitText(err error) string {
	limit, is := errors.AsType[*desired.LimitError](err)
	if !is {
		return err.Error()
	}
	start := "kumo start with a higher --" + limit.Why
	if limit.Why == desired.WhyTime {
		start = "kumo start"
	}
	return limit.Error() + ": the same command, and " + start + ", resume it"
}

func (n *nodeRunner) advise(err error) error {
	switch {
	case errors.Is(err, folder.ErrLocked) && n.crawl == "":
		return advice.With(err, "for another node on this machine, give it a name: kumo node --name b --join "+
			defaultAddress)
	case errors.Is(err, folder.ErrLocked):
		return advice.With(err, fmt.Sprintf("for another node on this machine, give it a name: kumo node --crawl %s "+
			"--name b --join %s", n.crawl, defaultAddress))
	}
	return cluster.Advise(err)
}
