package meshnodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/meshnode"
	"kumo/internal/app/node"
	"kumo/internal/app/session"
	"kumo/internal/app/setting"
	"kumo/internal/base/item"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/wait"
	"kumo/internal/cluster/bus/p2p"
	"kumo/internal/cluster/desired"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
	"kumo/internal/engine/crawl"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/history"
	"kumo/internal/state/journal/file"
)

// Run takes part in the crawl until it is done (nil), was stopped (node.ErrStopped), the node has left (node.ErrLeft),
// or ctx ends. A leaving node that knows no other one ends and retains its data (context.Canceled). If the node has
// crawled, there is a report.
func (n *Node) Run(ctx context.Context) (report *stats.Report, err error) {
	remembered, closeHistory, err := n.openHistory()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeHistory()) }()
	l := &nodeRun{Node: n, warcs: n.folder.Path(warcDir)}
	known := n.known()
	l.mesh, err = meshnode.New(meshnode.Config{
		Messenger: n.conn,
		Overlay:   overlay.Config{Self: asContact(n.conn.Self()), Seed: rand.Uint64()},
		Mesh: mesh.Config{
			Backups:    n.Backups,
			AbsentWait: n.Absent,
			CheckEvery: n.Check,
			LostAfter:  n.LostAfter,
			Terms:      n.Terms,
			Balance:    mesh.BalanceConfig{Area: n.WorkArea},

			ShareCookies: n.ShareCookies,
		},
		Places:        l.places(),
		Known:         known,
		WaitForPeers:  len(n.Join) > 0,
		Contact:       func(to strategy.Node) overlay.Contact { return asContact(n.conn.Contact(to)) },
		Learn:         func(c overlay.Contact) { n.conn.Learn(p2p.Contact{Node: strategy.Node(c.Node), Addrs: c.Addrs}) },
		Disk:          n.disk,
		Dir:           n.stateDir(),
		Router:        &n.router,
		History:       remembered,
		Read:          l.readLinks,
		Slice:         l.slice,
		Query:         l.query,
		Load:          l.meter.last,
		Figures:       l.figures,
		Report:        l.currentReport,
		SaveReport:    l.saveReport,
		Limits:        setting.LimitsOf,
		ApplySettings: l.applySettings,
		Version:       job.Version,
		Address:       n.Address,
		Browser:       n.Browser,
		Log:           n.Log,
		Changed:       func() { wait.Wake(n.changed) },
	})
	if err != nil {
		return nil, err
	}
	n.mesh.Store(l.mesh)
	report, err = l.run(ctx, len(n.Join)+len(known) > 0)
	if n.uploader != nil && n.crawl.Load() != nil {
		n.finishing.Store(true)
		err = session.FinishUpload(ctx, n.uploader, err)
	}
	return report, err
}

// historyShare is the inverse of the history's share of the memory budget. The history has as many URLs as the database
// of known URLs on average, times the backups. But it only stores hashes of them, and recently read blocks are in the
// system's cache.
const historyShare = 8

// openHistory opens the history of URLs found by other nodes, with its share of the memory.
func (n *Node) openHistory() (*history.DB, func() error, error) {
	machine := *n.job
	if n.ApplySettings != nil { // the memory is a setting of this machine
		if err := n.ApplySettings(&machine, nil); err != nil {
			return nil, nil, err
		}
	}
	j, err := file.Open(n.disk, n.folder.Path("state", "history.journal"), file.Config{})
	if err != nil {
		return nil, nil, err
	}
	db, err := history.Open(n.disk, n.folder.Path("state", "history"), j, history.Config{
		Key: meshnode.Key, Memory: machine.MemoryBudget() / historyShare})
	if err != nil {
		return nil, nil, errors.Join(err, j.Close())
	}
	return db, func() error { return errors.Join(db.Close(), j.Close()) }, nil
}

// readLinks reads a batch of links, each with the slice of its host. Before the crawl was started, the number of slices
// is not known.
func (l *nodeRun) readLinks(data []byte, f func(host, key string, link []byte)) error {
	c := l.currentSlices()
	if c == nil {
		return meshnode.ErrSettingsUnknown
	}
	return exchange.Read(data,
		func(k entry.Candidate, link []byte) { f(c.OfHost(k.Host, k.Item.URL), k.Item.Key(), link) })
}

// slice returns the slice of a URL, once the crawl was started.
func (l *nodeRun) slice(url string) string {
	if c := l.currentSlices(); c != nil {
		return c.Of(url)
	}
	return item.HostOf(url)
}

// currentSlices returns the division of hosts; nil before the crawl was started.
func (l *nodeRun) currentSlices() *hostSlices {
	if c := l.slices.Load(); c != nil {
		return c
	}
	r, _ := l.mesh.Crawl()
	if r.State == desired.Waiting {
		return nil
	}
	c := &hostSlices{job.SlicesOf(settings.FromMap(r.Settings))}
	l.slices.Store(c)
	return c
}

// A hostSlices is the division of hosts into slices.
type hostSlices struct{ *item.Slices }

type nodeRun struct {
	*Node
	mesh   *meshnode.Node
	warcs  string // the folder of WARC files
	slices atomic.Pointer[hostSlices]
	meter  loadMeter

	mu       sync.Mutex          // guards below
	settings map[string][]string // in effect
}

func (l *nodeRun) run(ctx context.Context, others bool) (report *stats.Report, err error) {
	living, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	over := make(chan error, 1) // result of the node's run
	beside.Go(func() {
		err := l.mesh.Run(living)
		over <- err
		stop()
	})
	beside.Go(func() { l.join(living, l.mesh, others) })
	beside.Go(func() {
		select {
		case <-l.leave:
			l.mesh.Leave()
		case <-living.Done():
		}
	})
	defer beside.Wait()
	defer stop()
	if err := l.begin(living); err != nil {
		stop()
		if ended := <-over; !session.IsStop(ended) { // the cause
			err = ended
		}
		return nil, l.ended(err)
	}
	return l.work(ctx, over)
}

func (l *nodeRun) begin(ctx context.Context) error {
	r, err := l.awaitStart(ctx)
	if err != nil {
		return err
	}
	l.settings = r.Settings
	if err := l.apply(l.job, r); err != nil {
		return err
	}
	if err := l.openCrawl(); err != nil {
		return err
	}
	if l.uploader != nil {
		l.uploader.Start(context.WithoutCancel(ctx))
	}
	e := l.crawl.Load().Engine
	return l.mesh.Attach(engine{e, e.Links, e.Dispatches, e.Seeding, e.Inspector})
}

// apply applies the settings of the crawl's record to a job.
func (l *nodeRun) apply(j *job.Job, r desired.Record) error {
	if l.ApplySettings != nil {
		if err := l.ApplySettings(j, settings.FromMap(r.Settings)); err != nil {
			return err
		}
	}
	return cmp.Or(j.CheckMesh(), job.CheckMeshSinks(r.Settings[job.SinkKey]))
}

// awaitStart waits until the crawl is running or paused, with settings that this node can apply.
func (l *nodeRun) awaitStart(ctx context.Context) (desired.Record, error) {
	select {
	case <-ctx.Done():
		return desired.Record{}, context.Cause(ctx)
	case <-l.mesh.Synced():
	}
	refused := uint64(0) // the last version whose settings could not be applied
	for was := desired.State(""); ; {
		r, version := l.mesh.Crawl()
		switch {
		case r.State == desired.Running || r.State == desired.Paused:
			trial := *l.job
			err := l.apply(&trial, r)
			if err == nil {
				return r, nil
			}
			if version != refused {
				refused = version
				l.Log.Error("this node cannot apply the crawl's settings; it waits until they change or the crawl is stopped",
					"err", err)
			}
		case was == "":
			l.Log.Info("waiting for the crawl to be started", "state", r.State)
		case r.State == desired.Stopping && was != r.State:
			return r, meshnode.ErrStopped
		}
		was = r.State
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-l.changed:
		}
	}
}

// endTimeout is how long the engine of a finished crawl may take to end.
const endTimeout = 5 * time.Second

func (l *nodeRun) work(ctx context.Context, over <-chan error) (report *stats.Report, err error) {
	crawling, stop := context.WithCancel(ctx)
	crawl := l.crawl.Load()
	var beside sync.WaitGroup
	beside.Go(func() { l.measureLoad(crawling) })
	defer beside.Wait()
	defer stop()
	failed := make(chan error, 1)
	go func() {
		var err error
		report, err = crawl.Run(crawling)
		failed <- err
	}()
	select {
	case err := <-failed: // the engine failed, or the crawl is done and the node ends later
		if err != nil {
			return report, err
		}
		return report, l.ended(<-over)
	case err = <-over:
		err = l.ended(err)
	}
	// A leaving node is complete only after the upload.
	l.finishing.Store(l.uploader != nil)
	if err == nil { // the engine was told to finish
		defer time.AfterFunc(endTimeout, stop).Stop()
	} else {
		crawl.SetEndReason(node.EndReason(err))
		stop()
	}
	if wrong := <-failed; wrong != nil && !session.IsStop(wrong) {
		err = errors.Join(err, wrong)
	}
	return report, err
}

// ended converts the error of a mesh node to that common to all strategies.
func (l *nodeRun) ended(err error) error {
	switch {
	case errors.Is(err, meshnode.ErrStopped):
		if limit, is := errors.AsType[*desired.LimitError](err); is {
			return fmt.Errorf("%w: %w", node.ErrStopped, limit)
		}
		return node.ErrStopped
	case errors.Is(err, meshnode.ErrLeft):
		return node.ErrLeft
	case errors.Is(err, meshnode.ErrAlone):
		l.Log.Info("no other node is known: this one retains its data")
		return fmt.Errorf("%w: %w", context.Canceled, err)
	}
	return err
}

// An engine combines the parts of a crawl's engine that a mesh node uses.
type engine struct {
	*crawl.Engine
	*crawl.Links
	*crawl.Dispatches
	*crawl.Seeding
	*crawl.Inspector
}
