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

const nodeLong = `Run one node of a crawl that several nodes share. It joins the others, waits for kumo start, crawls the hosts that are its own, and
keeps what it finds in a folder like that of kumo crawl.

The first node makes the cluster: with nothing but --crawl it serves other processes of this machine at ` +
	defaultAddress + `. The others
name it with --join. Between machines a secret is needed: kumo secret new.

With --servers 3 (or 5) the crawl goes on, and loses no URL, if one (or two) of these machines are lost with their disks: the first three
(or five) addresses in --join, the same on all nodes, are those of the nodes that run servers. Which ones do is fixed when the cluster is
made. A server listens on two ports: that of --listen for nodes, and the next one for other servers. What was fetched lies on the disk of
the node that fetched it.

With -o s3://bucket/prefix (or hdfs://, file://) record files go to that place as they are closed, each life's below a name of its own,
s3://bucket/prefix/NAME~LIFE, and the node's folder is --work. What is there survives the node's disk; pages whose records are not are
fetched again by the others. docs/how-to/keep-pages-of-lost-nodes.md has more.

With --strategy mesh no node runs a server, and any may be the first, or vanish: --join names any node that runs, and is not needed once a
node has met others. A node listens on TCP and UDP at port 7070, or where --listen says.

Ctrl-C, or SIGTERM, lets the node hand over all it has to the others, and leave; but the one with the only server just ends, and the others
wait until it is back. The second one ends it at once. After kill -9 or a power cut the
same command goes on where it was, or, if the others have taken over by then, as a new node. kumo stop ends all nodes, which keep their
place for the same commands again.`

const nodeExample = `  kumo node --crawl news                                            # the first one on this machine; then, in other terminals:
  kumo node --crawl news --name b --join 127.0.0.1:7070
  kumo start --crawl news https://example.com/

  kumo node --crawl news --secret-file cluster.secret --servers 3 \
    --listen a.internal:7070 --join a.internal:7070,b.internal:7070,c.internal:7070

  kumo node --crawl news --name c --join a.internal:7070 -o s3://bucket/news --keep-local=false

  kumo node --crawl commons --strategy mesh --secret-file s                       # the first; prints what others type:
  kumo node --crawl commons --strategy mesh --secret-file s --join 10.0.0.1:7070`

// A noder is kumo node's flags.
type nodeRunner struct {
	clusterFlags
	o          *options // those of a crawl that are a machine's
	given      *pflag.FlagSet
	name       string
	listen     string
	servers    int
	preset     string
	place      string
	splitter   string
	slots      int
	out        string
	onlyServer bool // it runs the only server
	mesh       meshFlags
	filters    filters
	upload     atomic.Pointer[uploads.Upload] // of the last life; nil: none
	index      nodeIndex
}

// meshFlags are those of a node of a crawl without a centre.
type meshFlags struct {
	backups   int
	reach     string
	noLAN     bool
	lostAfter time.Duration
	private   bool // also where other members want it, this node visits private addresses
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
		"with mesh, of any, also /dns4/… multiaddresses")
	f.StringVar(&n.name, "name", "", "the node's `NAME`, unlike those of the others: letters, digits, - and _ "+
		"(default: this machine's)")
	f.StringVar(&n.listen, "listen", "", "run a server at `ADDR`, as others reach it, if it is one of the cluster's "+
		"(default without --join: "+defaultAddress+"); with mesh, listen there (default: port 7070, or any where that "+
		"is taken)")
	f.IntVar(&n.servers, "servers", 0, "the first `N` addresses in --join are those of all servers: 1, 3 or 5")
	f.Var(setting.Choice(&n.preset, cluster.Presets()), "preset", "how far the nodes are from each other; the same on all")
	f.Var(
		setting.Choice(&n.place, cluster.Strategies()),
		"strategy",
		"how hosts are shared among the nodes, the same on all: "+
			"by a hash (shard), by who reaches them (hub), by how long nodes are predicted to take (balance), or by a hash and "+
			"without any server (mesh)",
	)
	f.Var(
		setting.Choice(&n.splitter, cluster.Splitters()),
		"splitter",
		"with balance: how what waits is split: all end together "+
			"(exact), by particle swarm (swarm), evenly (even), by a hash (hash); the same on all (default exact)",
	)
	f.IntVar(&n.slots, "slots", cluster.DefaultSlots, "plan for at most `M` nodes; the same on all")
	f.IntVar(&n.mesh.backups, "backups", cluster.DefaultBackups, "with mesh: `N` nodes remember the URLs of each host; "+
		"the same on all")
	f.Var(
		setting.Choice(&n.mesh.reach, cluster.Reaches()),
		"reach",
		"with mesh: whether other nodes can connect to this one; "+
			"auto asks them",
	)
	f.BoolVar(&n.mesh.noLAN, "no-lan", false, "with mesh: do not look for nodes in the local network")
	durationVar(f, &n.mesh.lostAfter, "lost-after", cluster.DefaultLostAfter, "with mesh and a place: a node that is "+
		"missed for so long counts as lost with its disk, and what it had fetched and not brought to its place is "+
		"fetched again")
	f.BoolVar(&n.mesh.private, "allow-private", false, "with mesh and a secret: visit private, loopback and link-local "+
		"addresses if the crawl's seeds or settings say so")
	f.StringVarP(&n.out, "out", "o", "", "the node's folder (default: crawls/CRAWL, or crawls/CRAWL-NAME with "+
		"--name); or a `PLACE` below which its record files go, as s3://bucket/prefix")
	borrow(f, crawlFlags(n.o), ofScope(setting.Node))
	f.SortFlags = false
	return withSettingsHelp(cmd)
}

func (n *nodeRunner) run(ctx context.Context, out io.Writer) (err error) {
	opts, err := n.resolve()
	if err != nil {
		return err
	}
	n.o.Job.Name = n.crawl + ", node " + n.name // as the view has it
	show := n.o.newShow(os.Stderr)
	if show.live != nil {
		show.live.Hint("Ctrl-C leaves the others to it; kumo stop ends all")
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
	if err := n.checkPlace(ctx, show); err != nil { // before there is a folder
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
			fmt.Fprintf(out, "  %-9s %s of nodes that were lost: their records had not reached the place\n", "again",
				stats.Count(again, "pages"))
		}
	}
	return n.advise(n.endError(err, show))
}

// lateJoin is after how long a node that waits for others says what could be wrong.
const lateJoin = 5 * time.Second

func hint(o *cluster.NodeOptions) string {
	switch {
	case o.Strategy == "mesh":
		return meshHint(o)
	case o.NATS != "":
		return "not joined yet: check the URL in --nats, and that it is reached from here"
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
		return o, usagef("--name %q: letters, digits, - and _ are wanted", n.name)
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
		return o, usagef("with --nats no node runs a server: leave --listen and --join out")
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

// checkRest refuses a folder of another crawl, and flags of the machine that are wrong: now, and not when the crawl is
// started.
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

// checkFolder refuses a folder of another crawl.
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
		show.log.Info("what the nodes know is kept in one copy by that NATS: if its disk is lost, so is the crawl; " +
			"--servers 3 keeps it on three of its servers")
	case n.onlyServer:
		show.log.Info("this is the cluster's only server: if its disk is lost, the crawl cannot go on, and URLs that wait " +
			"on other nodes, too, have to be found again; " +
			"with --servers 3 one of three disks may be lost without a URL")
	case !serves && n.listen != "" && o.NATS == "":
		show.log.Info("this node runs no server: --listen is none of the cluster's servers'", "listen", n.listen, "servers",
			strings.Join(o.Servers, ","))
	}
	if n.o.place == "" {
		show.log.Info("what this node fetches lies in its folder alone: copy warc/ to a safe place, now and then, or "+
			"start it with -o PLACE", "folder", n.out)
	}
	args := []any{"crawl", n.crawl, "node", n.name, "strategy", n.place, "preset", n.preset}
	if serves {
		args = append(args, "listen", n.listen)
	}
	show.log.Info("joining", args...)
}

// runCrawl takes part in the crawl, with the view and the metrics beside it. It leaves when ctx ends.
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
			show.log.Info("ending: the other nodes, if there are any, wait for this one's server; kumo stop ends them all")
			cut()
			return
		}
		show.log.Info("leaving: what this node has is handed over to the others; a second signal ends it at once, and " +
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

// leavePatience is how long a node that leaves waits for a cluster in which it holds no lease any more.
const leavePatience = 15 * time.Second

// waitHandover waits for a node that leaves until ctx ends. It returns false if the node can do nothing for that: the
// servers are away.
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

// endError says why the node has ended, and which of the reasons is none to worry about.
func (n *nodeRunner) endError(err error, show *console) error {
	if u, waits := errors.AsType[*session.IncompleteUpload](err); waits {
		return withPlace(n.endError(u.RunErr, show), adviseUploads(u.UploadErr))
	}
	switch {
	case err == nil:
		show.log.Info("the crawl is done")
	case errors.Is(err, policy.ErrLimit):
		show.log.Info("the crawl has the pages it was to have: the same command, and kumo start with a higher --limit, go on")
	case errors.Is(err, node.ErrStopped):
		show.log.Info("stopped: the same command, and kumo start, go on")
		return nil
	case errors.Is(err, node.ErrLeft):
		show.log.Info("left: the other nodes, if there are any, have what this one had to do; its records stay where "+
			"they are",
			"folder", n.out, "place", n.o.place)
		return nil
	case errors.Is(err, context.Canceled):
		show.log.Info("ended: the same command goes on")
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
