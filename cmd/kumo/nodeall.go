package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/node"
	"kumo/internal/app/wire/cluster"
	"kumo/internal/app/wire/uploads"
	"kumo/internal/base/advice"
	"kumo/internal/base/fair"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/catalog"
	"kumo/internal/content/policy"
	"kumo/internal/view/progress"
	"kumo/internal/view/web"
)

// A node of all crawls of its cluster: kumo node without --crawl. It is a node of each crawl, one after another process
// of the same name, in a folder below its own.

// allDir takes the place of the crawl in the default folder.
const allDir = "node"

// checkAll rejects flags that do not apply to a node of all crawls.
func (n *nodeRunner) checkAll() error {
	switch {
	case cluster.IsMesh(n.place):
		return usagef("a node with --strategy mesh takes part in one crawl: name it with --crawl. Without servers there is " +
			"no place where nodes find other crawls, or agree on turns at the hosts of several crawls")
	case n.given.Changed("strategy"), n.given.Changed("splitter"):
		return usagef("--strategy and --splitter are for a node of one crawl: name it with --crawl, or give them to " +
			"kumo start")
	case n.hashBy != "":
		return usagef("--hash-by is for a node of one crawl: name it with --crawl")
	case n.o.UI.Addr != "":
		return usagef("--ui is for a node of one crawl: name it with --crawl, or use kumo serve --crawl NAME")
	}
	return nil
}

// checkRestOfAll rejects the folder of a crawl, and invalid settings of the machine.
func (n *nodeRunner) checkRestOfAll() error {
	saved, err := folder.ReadSettings(n.out)
	if err != nil {
		return err
	}
	if len(saved) > 0 {
		return usagef("%s is the folder of a crawl: name another folder with --out, or the crawl with --crawl", n.out)
	}
	return n.o.resolveNode(n.given, &job.Job{Name: allDir, Dir: n.out}, nil)
}

// An allRunner runs a process's nodes of all crawls.
type allRunner struct {
	*nodeRunner
	opts *cluster.NodeOptions
	show *console
	host *cluster.Host
	out  io.Writer

	mu     sync.Mutex // guards the fields below
	crawls map[string]bool
	failed map[string]error // why a node of a crawl has ended, until the crawl is opened again
	parts  map[string]*crawlPart
	pool   *fair.Pool
}

// A crawlPart is an active crawl's part of the process's resources.
type crawlPart struct {
	share  int
	user   *fair.User
	memory int64        // bytes, since the crawl was opened; 0: it is not open yet
	one    cluster.Node // nil: not opened yet
	src    web.Source
	reopen context.CancelFunc // ends the node, which is then opened again with another part of the memory
}

// join adds a crawl to those that share the process's resources.
func (a *allRunner) join(crawl string, reopen context.CancelFunc) *crawlPart {
	a.mu.Lock()
	defer a.mu.Unlock()
	part := &crawlPart{share: 1, user: a.pool.Add(1), reopen: reopen}
	a.parts[crawl] = part
	return part
}

// sources returns the metrics of the crawls that are open, by name.
func (a *allRunner) sources() (all []web.Source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		if p := a.parts[name]; p.one != nil && p.one.Session() != nil {
			all = append(all, p.src)
		}
	}
	return all
}

// opened adds the metrics of a crawl, whose last failure is over.
func (a *allRunner) opened(n *nodeRunner, part *crawlPart, one cluster.Node) {
	src := metricsOf(one.Session)
	src.Name = n.crawl
	src.Again = func() int64 { return refetched(one) }
	src.Sinks = currentOr(one.Session, sinksOf)
	if n.o.place != "" {
		src.Uploads = currentOr(one.Session, uploadsOf)
	}
	if len(n.filters) > 0 {
		src.Filters = n.filters.counts
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	part.one, part.src = one, src
	delete(a.failed, n.crawl)
}

// check joins the errors that a check returns for the open crawls.
func (a *allRunner) check(one func(cluster.Node) error) (err error) {
	a.mu.Lock()
	open := map[string]cluster.Node{}
	for name, p := range a.parts {
		if p.one != nil {
			open[name] = p.one
		}
	}
	a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(open)) {
		if why := one(open[name]); why != nil {
			err = errors.Join(err, fmt.Errorf("crawl %s: %w", name, why))
		}
	}
	return err
}

func (a *allRunner) checkAlive() error { return a.check(cluster.Node.CheckAlive) }

// checkReady returns an error if the cluster is not connected, or a crawl cannot do its work now.
func (a *allRunner) checkReady() error {
	if err := a.host.Health(); err != nil {
		return err
	}
	return errors.Join(a.check(cluster.Node.CheckReady), a.failures(func(err error) bool { return !isSinkBehind(err) }))
}

// failures joins those errors of failed crawls that a condition selects.
func (a *allRunner) failures(is func(error) bool) (err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(a.failed)) {
		if why := a.failed[name]; is(why) {
			err = errors.Join(err, fmt.Errorf("crawl %s: %w", name, why))
		}
	}
	return err
}

func (a *allRunner) quit(crawl string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.parts[crawl].user.Remove()
	delete(a.parts, crawl)
}

// tooMuch is the ratio of a crawl's memory to its present part from which on the crawl is opened again.
const tooMuch = 1.25

// divide applies a crawl's share. It sets the memory of a job that is about to be opened, and opens other crawls again
// that have more memory than they may have now.
func (a *allRunner) divide(crawl string, j *job.Job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	part := a.parts[crawl]
	part.share = max(j.Share, 1)
	part.user.SetWeight(part.share)
	j.Crawl.Rate = 0 // the pool has it
	all := 0
	for _, p := range a.parts {
		all += p.share
	}
	budget := j.MemoryBudget()
	for name, p := range a.parts {
		fair := budget * int64(p.share) / int64(all)
		switch {
		case name == crawl && p.memory == 0:
			p.memory = fair
		case float64(p.memory) > tooMuch*float64(fair):
			a.show.log.Info("opening a crawl again, with less memory", "crawl", name, "memory", stats.Bytes(fair), "was",
				stats.Bytes(p.memory))
			p.reopen()
		}
	}
	j.Memory = part.memory
}

func (n *nodeRunner) runAll(ctx context.Context, out io.Writer, opts *cluster.NodeOptions) (err error) {
	a := &allRunner{nodeRunner: n, opts: opts, show: n.o.newLogShow(os.Stderr), out: &lockedWriter{w: out},
		crawls: map[string]bool{}, failed: map[string]error{}, parts: map[string]*crawlPart{},
		pool: fair.NewPool(n.o.Job.Frontier.Hosts, n.o.Job.Crawl.Rate)}
	log := a.show.log
	if opts.Secret, err = readSecret(n.secretFile, func(s string) { log.Warn(s) }); err != nil {
		return err
	}
	unlock, err := n.lock()
	if err != nil {
		return err
	}
	defer unlock()
	limitMemory(n.o.Job.MemoryLimit())
	opts.Log = log
	n.printStart(a.show, opts)
	late := time.AfterFunc(lateJoin, func() { log.Warn(hint(opts)) })
	a.host, err = cluster.OpenHost(ctx, n.out, *opts)
	late.Stop()
	if err != nil {
		if ctx.Err() != nil {
			return n.endError(context.Canceled, a.show)
		}
		return n.advise(err)
	}
	defer func() { err = errors.Join(err, a.host.Close()) }()
	log.Info("waiting for crawls: kumo start --crawl NAME URL adds one")
	beside, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	var side errgroup.Group
	side.Go(func() error { notifyService(ctx, beside, log, a.status); return nil })
	side.Go(func() error { tuneCollector(beside); return nil })
	side.Go(func() error { return a.host.Run(beside) })
	if n.o.Metrics != "" {
		l, err := net.Listen("tcp", n.o.Metrics)
		if err != nil {
			done()
			return errors.Join(usagef("--metrics: %v", err), side.Wait())
		}
		a.show.metrics(l.Addr())
		side.Go(func() error {
			return web.ServeSeveral(beside, l, web.Several{Name: n.name, Crawls: a.sources, Leases: a.host.Leases,
				Alive: a.checkAlive, Ready: a.checkReady})
		})
	}
	var all sync.WaitGroup
	err = a.host.Watch(ctx, func(c catalog.Crawl) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.crawls[c.Name] && ctx.Err() == nil {
			a.crawls[c.Name] = true
			all.Go(func() { a.follow(ctx, c) })
		}
	})
	if ctx.Err() != nil {
		err = nil
	}
	all.Wait()
	done()
	err = errors.Join(err, side.Wait(), a.failures(func(error) bool { return true }))
	if err == nil {
		log.Info("ended: the same command resumes")
	}
	return n.advise(err)
}

// lock locks the node's folder.
func (n *nodeRunner) lock() (unlock func(), err error) {
	if err := os.MkdirAll(n.out, 0o755); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(n.out, "node.lock"))
	ok, err := l.TryLock()
	if err == nil && !ok {
		err = n.advise(fmt.Errorf("%s: %w", n.out, folder.ErrLocked))
	}
	return func() { _ = l.Unlock() }, err
}

func (a *allRunner) status() progress.Status { return progress.Status{Time: time.Now()} }

const (
	minRestart = 5 * time.Second // after a failure
	maxRestart = 5 * time.Minute
)

// follow takes part in a crawl whenever it is active, until ctx ends.
func (a *allRunner) follow(ctx context.Context, c catalog.Crawl) {
	log := a.show.log.With("crawl", c.Name)
	again := minRestart
	for ctx.Err() == nil {
		err := a.host.Await(ctx, c.Name)
		if err == nil {
			err = a.withSinksOf(a.participate(ctx, c), c.Name, log)
		}
		switch {
		case ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)):
			return
		case errors.Is(err, context.Canceled): // to be opened again
		case err == nil:
			log.Info("the crawl is done")
		case errors.Is(err, node.ErrStopped):
			log.Info("stopped: kumo start resumes the crawl")
		case errors.Is(err, policy.ErrLimit):
			log.Info("the crawl has reached its --limit: kumo start with a higher --limit resumes it")
		case errors.Is(err, node.ErrLeft):
			log.Info("left: the other nodes, if any, have taken over this node's work")
			return
		case isSinkBehind(err):
			log.Warn(err.Error(), "do", advice.Of(err))
			a.fail(c.Name, err)
		default:
			a.fail(c.Name, err)
			if ctx.Err() != nil {
				return
			}
			log.Error("this node's part of the crawl has failed", "err", a.advise(err), "next_try_in", again)
			_ = wait.For(ctx, again)
			again = min(2*again, maxRestart)
			continue
		}
		again = minRestart
	}
}

// fail records why a node of a crawl has ended, until it opens the crawl again.
func (a *allRunner) fail(crawl string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed[crawl] = err
}

// participate takes part in a crawl until it ends or ctx does.
func (a *allRunner) participate(ctx context.Context, c catalog.Crawl) (err error) {
	n := a.child(c)
	show := *a.show
	show.log = a.show.log.With("crawl", c.Name)
	opts := *a.opts
	exporter, err := openTelemetry(ctx, c.Name, n.name, &show)
	if err != nil {
		return err
	}
	defer closeTelemetry(exporter, &show)
	beside, done := context.WithCancel(context.WithoutCancel(ctx))
	defer done()
	running, cut := context.WithCancel(beside)
	defer cut()
	part := a.join(c.Name, cut)
	defer a.quit(c.Name)
	j, err := n.prepare(ctx, &show, exporter, &opts)
	if err != nil {
		return err
	}
	opts.Resources = part.user
	apply := opts.ApplySettings
	opts.ApplySettings = func(j *job.Job, settings []settings.Setting) error {
		if err := apply(j, settings); err != nil {
			return err
		}
		a.divide(c.Name, j)
		return nil
	}
	defer n.filters.close()
	defer func() { err = errors.Join(err, n.index.finish(ctx, a.out, n.o.Quiet)) }()
	if err := n.findPlace(); err != nil {
		return err
	}
	if err := n.checkPlace(ctx, &show); err != nil {
		return err
	}
	one, err := a.host.OpenNode(ctx, c, j, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	a.opened(n, part, one)
	isOpen := func() bool { return one.Session() != nil }
	if err := exporter.ExportMetrics(ctx, web.RegistryWhile(part.src, isOpen)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { n.leave(beside, one, &show, cut) })()
	var g sync.WaitGroup
	g.Go(func() {
		show.run(beside, func() progress.Status {
			if s := one.Session(); s != nil {
				return liveStatus(s)
			}
			return progress.Status{Time: time.Now()}
		})
	})
	report, err := one.Run(running)
	done()
	g.Wait()
	if ctx.Err() != nil || !errors.Is(err, context.Canceled) { // otherwise the crawl is opened again
		n.printReport(a.out, one, report)
	}
	return err
}

// child returns the runner of one crawl.
func (a *allRunner) child(c catalog.Crawl) *nodeRunner {
	o := *a.o
	n := &nodeRunner{clusterFlags: a.clusterFlags, o: &o, given: a.given, name: a.name, listen: a.listen,
		servers: a.servers, preset: a.preset, place: c.Strategy, splitter: c.Splitter, slots: a.slots,
		out: filepath.Join(a.nodeRunner.out, c.Name), onlyServer: a.onlyServer}
	n.crawl = c.Name
	if o.place != "" {
		o.place = uploads.Child(o.place, c.Name)
	}
	return n
}

// A lockedWriter passes on one write at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
