package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
	"kumo/internal/content/policy"
	"kumo/internal/view/progress"
	"kumo/internal/view/web"
)

const nodeLong = `Run one node of a crawl that several nodes share. It joins the others, waits for kumo start, crawls
its own hosts, and stores pages in a folder like that of kumo crawl.

The first node creates the cluster: with only --crawl, it serves other processes of this machine at ` +
	defaultAddress + `. The other
nodes name it with --join. Between machines, a secret is required: kumo secret new.

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

const nodeExample = `  kumo node --crawl news                                            # the first one on this machine; then, in other terminals:
  kumo node --crawl news --name b --join 127.0.0.1:7070
  kumo start --crawl news https://example.com/

  kumo node --crawl news --secret-file cluster.secret --servers 3 \
    --listen a.internal:7070 --join a.internal:7070,b.internal:7070,c.internal:7070

  kumo node --crawl news --name c --join a.internal:7070 -o s3://bucket/news --keep-local=false

  kumo node --crawl commons --strategy mesh --secret-file s                       # the first; prints what others type:
  kumo node --crawl commons --strategy mesh --secret-file s --join 10.0.0.1:7070`

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
	slots      int
	out        string
	onlyServer bool // this node runs the only server
	mesh       meshFlags
	filters    filters
	upload     atomic.Pointer[uploads.Upload] // upload of the last session; nil without one
	index      nodeIndex
}

// meshFlags are the flags of a mesh node.
type meshFlags struct {
	backups   int
	reach     string
	noLAN     bool
	lostAfter time.Duration
	private   bool // allow private addresses if other members ask for them
}

func nodeCommand() *cobra.Command {
	n := &nodeRunner{o: &options{}, preset: "lan", place: "shard", mesh: meshFlags{reach: "auto"}}
	cmd := &cobra.Command{Use: "node --crawl NAME [flags]", Short: "Run a node of a crawl", Long: nodeLong,
		Example: nodeExample, Args: cobra.NoArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			n.given = cmd.Flags()
			return n.run(cmd.Context(), cmd.OutOrStdout())
		}}
	f := cmd.Flags()
	n.bind(f, "join the crawl at these `ADDR`esses, HOST:PORT, of nodes that run servers; "+
		"with mesh, of any node, also /dns4/… multiaddresses")
	f.StringVar(&n.name, "name", "", "the node's `NAME`, unique in the crawl: letters, digits, - and _ "+
		"(default: this machine's)")
	f.StringVar(&n.listen, "listen", "", "run a server at `ADDR`, as others reach it, if it is one of the cluster's "+
		"(default without --join: "+defaultAddress+"); with mesh, listen there (default: port 7070, or any where that "+
		"is taken)")
	f.IntVar(&n.servers, "servers", 0, "the first `N` addresses in --join are those of all servers: 1, 3 or 5")
	f.Var(setting.Choice(&n.preset, cluster.Presets()), "preset", "network between the nodes; the same on all")
	f.Var(
		setting.Choice(&n.place, cluster.Strategies()),
		"strategy",
		"strategy for sharing hosts, the same on all nodes: "+
			"by a hash (shard), by reachability (hub), by predicted time (balance), or by a hash and "+
			"without servers (mesh)",
	)
	f.Var(
		setting.Choice(&n.splitter, cluster.Splitters()),
		"splitter",
		"with balance: how to split pending URLs: finish together "+
			"(exact), by particle swarm (swarm), evenly (even), by a hash (hash); the same on all (default exact)",
	)
	f.IntVar(&n.slots, "slots", cluster.DefaultSlots, "plan for at most `M` nodes; the same on all")
	f.IntVar(&n.mesh.backups, "backups", cluster.DefaultBackups, "with mesh: `N` nodes store each host's known URLs; "+
		"the same on all")
	f.Var(
		setting.Choice(&n.mesh.reach, cluster.Reaches()),
		"reach",
		"with mesh: whether other nodes can connect to this one; "+
			"auto asks them",
	)
	f.BoolVar(&n.mesh.noLAN, "no-lan", false, "with mesh: do not search the local network for nodes")
	durationVar(f, &n.mesh.lostAfter, "lost-after", cluster.DefaultLostAfter, "with mesh and a storage location: a node "+
		"absent for this long counts as lost with its disk, and pages that it had not uploaded are "+
		"fetched again")
	f.BoolVar(&n.mesh.private, "allow-private", false, "with mesh and a secret: visit private, loopback and link-local "+
		"addresses if the crawl's seeds or settings require it")
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
	n.o.Job.Name = n.crawl + ", node " + n.name // title of the progress display
	show := n.o.newShow(os.Stderr)
	if show.live != nil {
		show.live.Hint("Ctrl-C hands this node's work to the others; kumo stop ends all")
	}
	j := &job.Job{Name: n.crawl, Dir: n.out, Listener: show.listener(),
		Warn: func(err error) { show.log.Warn(err.Error()) }}
	opts.Log = show.log
	n.filters, err = openFilters(ctx, &n.o.Filter, n.crawl, func(line string) { show.log.Warn(line) })
	if err != nil {
		return err
	}
	defer n.filters.close()
	opts.ApplySettings = func(j *job.Job, settings []settings.Setting) error {
		if err := n.o.resolveNode(n.given, j, settings); err != nil {
			return err
		}
		n.blockPrivate(j, &opts)
		n.filters.addTo(j)
		n.index.addTo(j, n.o.Index && settings != nil, indexErrorLogger(show))
		return nil
	}
	defer func() { err = errors.Join(err, n.index.finish(ctx, out, n.o.Quiet)) }()
	if opts.Secret, err = readSecret(n.secretFile, func(s string) { show.log.Warn(s) }); err != nil {
		return err
	}
	limitMemory(n.o.Job.MemoryLimit())
	if n.place == "mesh" {
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
	opts.NewUploader, opts.ReadManifest, opts.PlaceWait = n.uploaderFactory(show), uploads.ReadManifest, n.o.PlaceWait
	opts.CopyState, opts.DropState = uploads.CopyState, uploads.DropState
	n.printStart(show, &opts)
	late := time.AfterFunc(lateJoin, func() { show.log.Warn(hint(&opts)) })
	one, err := cluster.OpenNode(ctx, j, opts)
	late.Stop()
	if err != nil && ctx.Err() != nil {
		return n.endError(context.Canceled, show)
	}
	if err != nil {
		return n.advise(err)
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	if a, may := one.(interface{ Addresses() []string }); may {
		n.printJoin(out, a.Addresses())
	}
	report, err := n.runCrawl(ctx, one, show, page)
	if report != nil && !n.o.Quiet {
		report.Print(out)
		fmt.Fprintf(out, "  %-9s %s\n", "folder", n.out)
		if up := n.upload.Load(); up != nil {
			printUploads(out, up.Status())
		}
		if again := refetched(one); again > 0 {
			fmt.Fprintf(out, "  %-9s %s of lost nodes: their records had not been uploaded\n", "again",
				stats.Count(again, "pages"))
		}
	}
	return n.advise(n.endError(err, show))
}

// lateJoin is the time after which a node that waits for others logs possible reasons.
const lateJoin = 5 * time.Second

func hint(o *cluster.NodeOptions) string {
	switch {
	case o.Strategy == "mesh":
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
	if err := checkCrawlName(n.crawl); err != nil {
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
	if n.splitter != "" && n.place != "balance" {
		return o, usagef("--splitter is for --strategy balance, and this is %s", n.place)
	}
	if n.place == "mesh" {
		return n.resolveMesh()
	}
	if err := n.checkNoMesh(); err != nil {
		return o, err
	}
	o = cluster.NodeOptions{Name: n.name, Listen: n.listen, Join: n.join, NATS: n.nats, Preset: n.preset,
		Strategy: n.place, Splitter: n.splitter, Slots: n.slots}
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
	if err := n.checkFolder(); err != nil {
		return err
	}
	return n.o.resolveNode(n.given, &job.Job{Name: n.crawl, Dir: n.out}, nil)
}

func (n *nodeRunner) resolveNames() {
	if n.out == "" {
		n.out = folder.DefaultDir(n.crawl)
		if n.name != "" {
			n.out += "-" + n.name
		}
	}
	if n.name == "" {
		n.name = hostName()
	}
	if n.listen == "" && len(n.join) == 0 && n.nats == "" && n.place != "mesh" {
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
	if n.place == "mesh" {
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
			"on all nodes have to be found again; " +
			"with --servers 3, one of three disks can be lost without losing a URL")
	case !serves && n.listen != "" && o.NATS == "":
		show.log.Info("this node runs no server: --listen is not a server address of the cluster", "listen", n.listen, "servers",
			strings.Join(o.Servers, ","))
	}
	if n.o.place == "" {
		show.log.Info("pages fetched by this node are only in its folder: back up warc/ regularly, or "+
			"start it with -o PLACE", "folder", n.out)
	}
	args := []any{"crawl", n.crawl, "node", n.name, "strategy", n.place, "preset", n.preset}
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
			return liveStatus(c)
		}
		return progress.Status{Time: time.Now()}
	}
	g.Go(func() error { show.run(beside, status); return nil })
	g.Go(func() error { notifyService(ctx, beside, show.log, status); return nil })
	g.Go(func() error { tuneCollector(beside); return nil })
	running, cut := context.WithCancel(beside)
	defer cut()
	leave := context.AfterFunc(ctx, func() {
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
	})
	defer leave()
	if n.o.Metrics != "" {
		l, err := net.Listen("tcp", n.o.Metrics)
		if err != nil {
			done()
			return nil, errors.Join(usagef("--metrics: %v", err), g.Wait())
		}
		show.log.Info("metrics", "at", "http://"+l.Addr().String()+"/metrics")
		src := metricsOf(one.Session)
		if n.o.place != "" {
			src.Uploads = currentOr(one.Session, uploadsOf)
			src.States = func() (s stats.UploadedState) {
				if has := src.Uploads().State; has != nil {
					s = *has
				}
				return s
			}
		}
		src.Again = func() int64 { return refetched(one) }
		if len(n.filters) > 0 {
			src.Filters = n.filters.counts
		}
		g.Go(func() error { return web.Serve(beside, l, src) })
	}
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
	switch {
	case err == nil:
		show.log.Info("the crawl is done")
	case errors.Is(err, policy.ErrLimit):
		show.log.Info("the crawl has reached its --limit: the same command, and kumo start with a higher --limit, resume it")
	case errors.Is(err, node.ErrStopped):
		show.log.Info("stopped: the same command, and kumo start, resume it")
		return nil
	case errors.Is(err, node.ErrLeft):
		show.log.Info("left: the other nodes, if any, have taken over this node's work; its records stay where "+
			"they are",
			"folder", n.out, "place", n.o.place)
		return nil
	case errors.Is(err, context.Canceled):
		show.log.Info("ended: the same command resumes")
		return nil
	}
	return err
}

func (n *nodeRunner) advise(err error) error {
	switch {
	case errors.Is(err, folder.ErrLocked):
		return advice.With(err, fmt.Sprintf("for another node on this machine, give it a name: kumo node --crawl %s "+
			"--name b --join %s", n.crawl, defaultAddress))
	}
	return cluster.Advise(err)
}
