package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/advice"
	"kumo/internal/bus"
	"kumo/internal/crawl"
	"kumo/internal/folder"
	"kumo/internal/journal"
	"kumo/internal/journal/stream"
	"kumo/internal/member"
	"kumo/internal/node"
	"kumo/internal/page"
	"kumo/internal/settings"
	"kumo/internal/stats"
	"kumo/internal/strategy"
	"kumo/internal/transfer"
	"kumo/internal/weburl"
	"kumo/internal/wire"
)

// A session is a node for as long as it has its place: its identity, its part of the crawl, and its membership.
type session struct {
	n       *Node
	id      node.Identity
	bus     *meter
	crawl   *wire.Crawl
	journal *stream.Journal
	router  *node.Router
	node    *node.Node
	engine  *engine
	counter *counter
	waiter  waiter

	was      bool                // an earlier process was a member, or about to be one
	joined   atomic.Bool         // so is this one
	settings map[string][]string // of the crawl's record that this node goes by

	mu   sync.Mutex // guards below
	last pace
}

// A pace is how many pages there were at a time.
type pace struct {
	pages int64
	when  time.Time
	rate  float64
}

// open makes the node that the folder belongs to, or a new one. What others have taken over by now is node.ErrLost.
func (n *Node) open(ctx context.Context) (_ *session, err error) {
	l := &session{n: n, router: node.NewRouter(), engine: new(engine)}
	l.counter, l.waiter = newCounter(l), waiter{l: l}
	job := *n.job
	l.crawl = wire.NewPart(&job, n.disk, &wire.Peers{Join: l.join, Server: n.opts.Listen != "",
		Ship: func(local journal.Journal) (journal.Journal, error) { return l.ship(ctx, local) }})
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if err := l.crawl.OpenFolder(ctx); err != nil {
		return nil, err
	}
	place := l.crawl.Folder()
	if place.HasJournal() && !place.IsNodes() {
		return nil, advice.Usage("%s has a crawl of one node alone, which cannot become a part of another: name another folder", job.Dir)
	}
	// A node that was killed before it was taken in has a journal, too, and goes on.
	if l.id, err = node.OpenIdentity(n.disk, place.Path("state", folder.NodeFile), n.opts.Name); err != nil {
		return nil, err
	}
	if l.was = l.id.Joined; l.was {
		l.joined.Store(true)
		n.home.kept.Store(true)
	}
	joined, err := n.join(l.id.Node())
	if err != nil {
		return nil, err
	}
	l.bus = &meter{Bus: joined}
	if err := l.awaitSettings(ctx); err != nil {
		return nil, err
	}
	for err = l.stillIn(ctx); errors.Is(err, bus.ErrUnavailable); err = l.stillIn(ctx) {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(lookAtState):
		}
	}
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(place.Path("state", "estates")); err != nil { // of a process that died while it folded them
		return nil, err
	}
	return l, l.build()
}

func (n *Node) warn(err error) { n.opts.Log.Warn(err.Error()) }

// awaitSettings waits until the crawl has settings, if they matter, and makes them the job's.
func (l *session) awaitSettings(ctx context.Context) error {
	settle := l.n.opts.Settle
	if settle == nil {
		return nil
	}
	r, err := l.await(ctx, func(r *node.Record) bool {
		return r.State != node.Waiting && (len(r.Settings) > 0 || r.State != node.Stopping)
	})
	if err != nil {
		return err
	}
	l.settings = r.Settings
	return settle(l.crawl.Job, settingsOf(r.Settings))
}

// awaitStart waits until the crawl goes on, if it was stopped or is done: then all nodes come at once, with what they
// have ready. Who came while others are not there would take them for dead.
func (l *session) awaitStart(ctx context.Context) (node.Record, error) {
	return l.await(ctx, func(r *node.Record) bool { return r.State != node.Stopping && r.State != node.Done })
}

const lookAtState = time.Second // how often

// await waits until the crawl's record is as it should be, or says meanwhile that nodes are to end. Others see the node
// wait.
func (l *session) await(ctx context.Context, is func(*node.Record) bool) (node.Record, error) {
	var was node.State
	changed, stop := l.changes(ctx)
	defer stop()
	for {
		r, _, err := (node.Control{Registry: l.bus}).Record(ctx)
		switch {
		case err == nil && is(&r) || err != nil && !errors.Is(err, bus.ErrUnavailable):
			return r, err
		case l.n.leaving.Load():
			return r, context.Canceled
		case err == nil && r.State == node.Stopping && was != "" && was != r.State:
			return r, node.ErrStopped
		case was == "":
			l.n.opts.Log.Info("waiting for the crawl to be started", "state", r.State)
		}
		if err == nil {
			was = r.State
		}
		if err := l.waiter.here(ctx); err != nil {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-changed:
		case <-time.After(lookAtState):
		}
	}
}

// changes tells when the crawl's record may have changed, until it is stopped: who waits for the start learns of it at
// once.
func (l *session) changes(ctx context.Context) (changed <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	news, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		err := l.bus.Watch(ctx, node.RecordKey, func(bus.Entry) {
			select {
			case news <- struct{}{}:
			default:
			}
		})
		if ctx.Err() == nil {
			l.n.opts.Log.Debug("the crawl's record is looked at without being told of changes", "err", err)
		}
	}()
	return news, func() { cancel(); <-ended }
}

func settingsOf(record map[string][]string) []settings.Setting {
	var all []settings.Setting
	for key, values := range record {
		all = append(all, settings.Setting{Key: key, Values: values})
	}
	slices.SortFunc(all, func(a, b settings.Setting) int { return compare(a.Key, b.Key) })
	return all
}

func compare(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// stillIn returns node.ErrLost if the node was a member, and is none any more.
func (l *session) stillIn(ctx context.Context) error {
	if !l.joined.Load() {
		return nil
	}
	e, err := l.bus.Get(ctx, member.TableKey)
	if err != nil {
		return err
	}
	t := new(member.Table)
	if e.Value != nil {
		if t, err = member.ParseTable(e.Value); err != nil {
			return err
		}
	}
	self := l.id.Node()
	if slices.ContainsFunc(t.Members, func(m strategy.Member) bool { return m.Node == self }) ||
		slices.Contains(t.Leaving, self) {
		return nil
	}
	return fmt.Errorf("%w: it is not in the cluster's table", node.ErrLost)
}

// build makes the crawl's parts, and the node.
func (l *session) build() error {
	c, n := l.crawl, l.n
	c.Job.Crawl.Stay = true
	if err := c.Recover(); err != nil {
		return err
	}
	state := c.State()
	cfg := node.Config{
		Crawl: CrawlWord(c.Job.Name), Identity: l.id, Arrived: state.Arrived(), Forgot: state.Went(),
		Partial: state.Partial(),
		Layout:  n.layout(), Timing: n.timing,
		Bus: l.bus, Engine: l.engine, Router: l.router, Estates: l.estates(), Enter: l.enter, Figures: l.figures,
		Ending: l.journal.Ending, Settle: l.settle, Knows: l.knows,
		Version: wire.Version, Address: n.opts.Address, Log: n.opts.Log,
	}
	n.placing.place(&cfg)
	l.node = node.New(cfg)
	if err := c.Assemble(); err != nil {
		return err
	}
	l.engine.Engine, l.engine.Endpoint = c.Engine(), c.Engine().Transfers()
	return nil
}

// ship has the journal shipped.
func (l *session) ship(ctx context.Context, local journal.Journal) (journal.Journal, error) {
	j, err := stream.Open(ctx, local, l.bus, logOf(l.id.Node()), stream.Config{Warn: l.n.warn})
	if errors.Is(err, stream.ErrSealed) {
		return nil, fmt.Errorf("%w: %w", node.ErrLost, err)
	}
	if err != nil {
		return nil, err
	}
	// What came whole from others before is told to them as such: the log must say so, too, should this process die at
	// once.
	if err := j.Ship(ctx, j.End()); err != nil {
		err = errors.Join(err, j.Close())
		if errors.Is(err, stream.ErrSealed) {
			return nil, fmt.Errorf("%w: %w", node.ErrLost, err)
		}
		return nil, err
	}
	l.journal = j
	return j, nil
}

// logOf is the log to which a node's journal is shipped.
func logOf(n strategy.Node) string { return "journal/" + string(n) }

// A journalLagGuard router lets no request be made while the log is late. What a node fetches while it can tell nobody
// is fetched again if it is taken for dead, and it could do so for as long as its lease lasts.
type journalLagGuard struct {
	crawl.Router
	log interface{ Late() bool }
}

func (p journalLagGuard) May(host string) bool { return p.Router.May(host) && !p.log.Late() }

// join makes the engine's parts those of a node.
func (l *session) join(p *crawl.Parts) {
	p.Router = journalLagGuard{l.router, l.journal}
	p.Arrived = func(t member.Transfer, hosts []string) { l.node.Arrived(t, hosts) }
	p.NewRoot = func(u weburl.URL) { l.node.NewRoot(u.String()) }
	p.Listener = crawl.Tee(p.Listener, crawl.Listener{Visited: func(*page.Record) { l.router.Ended() },
		Retried: func(*page.Record, time.Duration) { l.router.Ended() }})
}

func (l *session) enter() error {
	l.n.home.kept.Store(true)
	l.joined.Store(true)
	id := l.id // which others read
	id.Joined = true
	return id.Save(l.n.disk, l.crawl.Folder().Path("state", folder.NodeFile))
}

// run is the node's life.
func (l *session) run(ctx context.Context) (*stats.Report, error) {
	l.engine.Pause(true)
	record, err := l.awaitStart(ctx)
	if err != nil {
		return nil, err
	}
	if err := l.stillTrue(record.Settings); err != nil {
		return nil, err
	}
	l.settle(record.Settings)
	crawling, stop := context.WithCancel(ctx)
	defer stop()
	taking, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	came := make(chan struct{})
	go func() { defer close(came); l.waiter.done(crawling) }()
	defer func() { stop(); <-came }()
	counted := l.counter.start(crawling)
	defer func() { stop(); <-counted }()
	var report *stats.Report
	ended := make(chan error, 1)
	go func() {
		var err error
		report, err = l.crawl.Run(crawling)
		if err != nil { // otherwise the crawl is done, and the node ends in its time
			leave(errors.Join(errEnded, err))
		}
		ended <- err
	}()
	err = l.node.Run(taking)
	if err == nil { // nothing is left to do, and the engine was told so
		defer time.AfterFunc(patience, stop).Stop()
	} else {
		l.crawl.EndsBecause(howEnded(err))
		stop()
	}
	failed := <-ended
	l.shipRest(ctx)
	l.takenIn(ctx, err)
	if errors.Is(err, node.ErrLeft) {
		l.notePages(ctx)
		l.dropLog(ctx)
	}
	switch {
	case errors.Is(err, stream.ErrSealed), errors.Is(failed, stream.ErrSealed): // whoever has met it first
		return report, fmt.Errorf("%w: %w", node.ErrLost, errors.Join(err, failed))
	case errors.Is(err, errEnded):
		return report, failed
	case wire.IsStop(failed):
		return report, err
	}
	return report, errors.Join(err, failed)
}

var errEnded = errors.New("the engine has ended")

const patience = 5 * time.Second

// shipRest gives the log some time to have all, so that nothing is missing there if the node does not come back.
func (l *session) shipRest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := l.journal.Ship(ctx, l.journal.End()); err != nil {
		l.n.opts.Log.Debug("the log does not have all", "err", err)
	}
}

// takenIn finds out whether a node that failed was a member ever: it says that it is one before it is.
func (l *session) takenIn(ctx context.Context, err error) {
	if l.was || err == nil || isEnd(err) || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if errors.Is(l.stillIn(ctx), node.ErrLost) {
		l.n.home.kept.Store(false)
	}
}

// notePages notes how many pages this node has fetched, which leaves: its lease, which told that, is gone.
func (l *session) notePages(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if _, err := (ledger{l.bus}).note(ctx, pages{l.id.Node(): l.crawl.Stats.Pages()}); err != nil {
		l.n.opts.Log.Debug("the pages of this node are not noted", "err", err)
	}
}

// dropLog removes the log of a node that has nothing any more. One that was the last of its cluster stays in the table,
// and keeps its own.
func (l *session) dropLog(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := l.stillIn(ctx); !errors.Is(err, node.ErrLost) {
		return
	}
	if err := l.bus.Drop(ctx, logOf(l.id.Node())); err != nil {
		l.n.opts.Log.Warn("the log of this node stays", "err", err)
	}
}

// figures are what others are told of the node's work.
func (l *session) figures() node.Figures {
	c := l.crawl
	pages, counts := c.Stats.Pages(), c.Frontier.Counts()
	outbox, _ := l.engine.Outbox()
	f := node.Figures{Pages: pages, Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs,
		Known: c.URLsKnown(), Outbox: outbox, InFlight: counts.Active,
		Lag: l.journal.Lag(), MessageBytes: l.bus.sent.Load(), ShippedBytes: l.bus.logged.Load(),
		RegistryBytes: l.bus.put.Load()}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if d := now.Sub(l.last.when); l.last.when.IsZero() {
		l.last = pace{pages: pages, when: now}
	} else if d >= paceTime {
		l.last = pace{pages, now, float64(pages-l.last.pages) / d.Seconds()}
	}
	f.Rate = l.last.rate
	if o := c.Outage(); o.CutOff {
		f.CutOff = max(now.Sub(o.Since).Seconds(), 0)
		f.CutOffWhy = o.Why
	}
	f.Busy = float64(f.InFlight) / float64(max(c.Job.Frontier.Hosts, 1))
	return f
}

const paceTime = 3 * time.Second // over which a rate is taken

// close lets all go.
func (l *session) close() error {
	err := l.crawl.Close()
	if l.bus != nil {
		l.waiter.gone(context.Background())
		l.dropLease()
		err = errors.Join(err, l.bus.Close())
	}
	return err
}

// dropLease takes back the lease of a node that has not become a member: nobody waits for its end, but people would see
// a node that comes.
func (l *session) dropLease() {
	if l.joined.Load() || l.id.Name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), goneWait)
	defer cancel()
	key := member.LeasePrefix + string(l.id.Node())
	e, err := l.bus.Get(ctx, key)
	if err == nil && e.Value != nil {
		err = l.bus.Delete(ctx, key, e.Revision)
	}
	if err != nil {
		l.n.opts.Log.Debug("a lease stays behind", "key", key, "err", err)
	}
}

// knows is what the node says to who adds URLs.
func (l *session) knows(url string) (mine, known bool, err error) {
	u, err := weburl.Parse(url)
	if err != nil {
		return false, false, err
	}
	return l.crawl.Engine().Knows(u)
}

// estates are where the node folds what the dead have left.
func (l *session) estates() node.FailedNodes {
	return &failedNodes{disk: l.crawl.Disk(), dir: l.crawl.Folder().Path("state", "estates"), bus: l.bus, job: l.crawl.Job}
}

// An engine is a crawl's engine as a node wants it.
type engine struct {
	*crawl.Engine
	*transfer.Endpoint
}

var _ node.Engine = (*engine)(nil)

func (e *engine) Export(owner func(host string) strategy.Node) (node.Export, error) {
	return asExport(e.Endpoint.Export(owner))
}

// asExport keeps a nil pointer from becoming an interface that is not nil.
func asExport(x *transfer.Export, err error) (node.Export, error) {
	if err != nil {
		return nil, err
	}
	return x, nil
}

// asideName is where the folder keeps what nodes had that lost their place.
func asideName(life string) string { return filepath.Join("lost", life) }
