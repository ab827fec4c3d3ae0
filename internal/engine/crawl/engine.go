package crawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumo/internal/base/item"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// An Engine crawls. It is used for one Run, and starts and ends its parts, each of which guards its own state. The
// exported parts are what other packages use beside Run.
type Engine struct {
	cfg      *Config
	frontier *frontier.Frontier
	ledger   *ledger.Ledger
	known    *known
	limits   *limits
	line     *line
	holds    *holds
	abandons *abandoner
	skips    *skipReports
	recrawls *recrawls
	stuck    *stuckGuard
	runner   *runner
	resumed  resumed
	watches  []func(context.Context) error // run beside the workers until the run ends

	Links       *Links
	Seeding     *Seeding
	Dispatches  *Dispatches
	Checkpoints *Checkpoints
	Inspector   *Inspector
}

// resumed is what earlier runs have left.
type resumed struct {
	refused int   // URLs that nobody can fetch, dropped
	broken  error // why the engine cannot run
}

// known is what the crawl has met.
type known struct {
	seen      recovery.Seen
	db        *seen.DB // seen, if that is on the disk
	digests   recovery.Digests
	undecided atomic.Int64 // URLs in memory that the next merge decides
	depths    bool         // the depth at which a URL was met matters
}

// limits counts pages and bytes against the crawl's limits, and stops the run that reaches one.
type limits struct {
	cfg   *Config
	quota *policy.Quota
	rate  *rate.Limiter
	tries atomic.Int64 // visits that a URL gets before it has failed
	bytes atomic.Int64 // over the wire, all runs

	known   *known
	hosts   *hosts
	traps   *trapGuard
	stats   *stats.Counter
	stopper *stopper
}

// A stopper ends a run.
type stopper struct{ cancel context.CancelCauseFunc } // set when the run begins

func (s *stopper) stop(why error) { s.cancel(why) }

// deferredURLs is the file of deferred URLs.
type deferredURLs struct {
	file *statefile.Deferred // may be nil
	upTo int64               // how much of it earlier runs, and this one, have reported as skipped
}

// scopeSeeds are the URLs from which the scope follows: seeds, and where they redirect to. Secrets may be sent to the
// seeds' origins only.
type scopeSeeds struct {
	cfg     *Config
	file    *statefile.ScopeSeeds
	all     *weburl.Set      // those, by the crawl's rules; nil where all are new and nobody asks
	trusted *weburl.Set      // origins of seeds; nil if there are no secrets
	tell    func(weburl.URL) // tells other nodes of a new one; may be nil

	scope   *weburl.Scope
	line    *line
	origins *origins
	fetcher Fetcher
	ledger  *ledger.Ledger
}

// journalCounts are counters that the journal gets with each commit.
type journalCounts struct {
	stats    *stats.Counter
	offHosts offHosts
	durable  *durablePages
}

// New makes an engine that goes on from a state.
func New(config Config, p Parts, s *recovery.State) *Engine {
	config = config.withDefaults()
	cfg, views, stop := &config, &s.Views, &stopper{}
	front := views.Frontier
	hosts := &hosts{router: p.Router, slices: front.Slices(), frontier: front}
	known := &known{seen: views.Seen, digests: views.Digests, depths: cfg.BoundsDepth()}
	known.db, _ = known.seen.(*seen.DB)
	known.undecided.Store(int64(len(s.UndecidedURLs)))
	names := newNames()
	ends := newEnds(s.ReportedURLs)
	rules := &policy.Rules{Scope: p.Scope, Block: p.Block, Include: cfg.Include, Exclude: cfg.Exclude,
		MaxDepth: cfg.Depth, MaxRedirects: cfg.MaxRedirects, Embeds: cfg.Embeds, Overrides: cfg.Overrides}
	ranks := newRanking(p.Ranks, cfg.Prefer, p.Listener)
	traps := newTrapGuard(cfg, s.Traps)
	line := newLine(cfg, p.Fetcher, p.Listener, stop)
	origins := newOrigins(cfg.Now, line)
	lim := &limits{cfg: cfg, quota: policy.NewQuota(cfg.pageLimits(), s.Stats.NewPages()), rate: newLimiter(cfg.Rate),
		known: known, hosts: hosts, traps: traps, stats: s.Stats, stopper: stop}
	lim.tries.Store(int64(cfg.Tries))
	lim.bytes.Store(s.Stats.Totals().Bytes)
	counts := &journalCounts{stats: s.Stats, offHosts: offHosts{links: map[string]int64{}},
		durable: newDurablePages(s.Stats.Pages())}
	log := ledger.New(ledger.Config{Stores: ranks.stores(p.Stores), Journal: p.Journal, Every: cfg.Commit,
		Room: cfg.Shares.pending(), Now: cfg.Now,
		Begin: entry.AppendTime, Mark: entry.AppendMark, Extra: counts.appendCounts, Durable: p.Durable})
	feed := newFeed(p.Seeds, s.SeedLists)
	roots := &scopeSeeds{cfg: cfg, file: p.Roots, tell: p.NewRoot, scope: p.Scope, line: line, origins: origins,
		fetcher: p.Fetcher, ledger: log}
	if !p.NoSecrets {
		roots.trusted = weburl.NewSet()
	}
	if length, _ := store.Find(s.Marks, statefile.ScopeSeedsName); roots.worthKnowing(length, p.Router != nil, feed) {
		roots.all = weburl.NewSet()
	}
	var claims *claims
	if cfg.Claims && p.Router != nil {
		claims = newClaims(hosts.slices, &p, s.Tenures)
	}
	out := newOutgoing(&outgoing{cfg: cfg, hosts: hosts, known: known, claims: claims, roots: roots, ranks: ranks,
		ledger: log}, s.Links)
	hold := &holds{line: line, outgoing: out, frontier: front, known: known}
	if hold.disk.free = p.Free; p.Free != nil {
		hold.disk.least = cfg.MinFree
	}
	keeper := &rankKeeper{ranks: ranks, hosts: hosts, outgoing: out, ledger: log}
	moved := &transferHooks{holds: hold, hosts: hosts, origins: origins, ends: ends, ranks: ranks, frontier: front}
	moves := transfer.New(transfer.Config{Ledger: log, Frontier: front, DB: known.db, Abandoned: views.Abandoned,
		Quota: lim.pageQuota(), Now: cfg.Now, Ours: hosts.ours, Hash: origins.hash, Intern: names.intern,
		Reported: ends.wasReported, Wait: moved.awaitTransfer, Removed: moved.hostsRemoved, Received: p.Arrived,
		Rank: ranks.rankAll, Give: moved.giveArrived, Worth: ranks.worth(), Cookies: p.Cookies}, s.Unsettled)

	deferred := &deferredURLs{file: p.Deferred, upTo: s.DeferredUpTo}
	admit := &admission{cfg: cfg, hooks: p.Hooks, rules: rules, known: known, names: names, traps: traps, ranks: ranks,
		deferred: p.Deferred != nil}
	batches := &batchWriter{hosts: hosts, known: known, admission: admit, outgoing: out, claims: claims, ranks: ranks,
		roots: roots, ends: ends, counts: counts, frontier: front, transfer: moves, deferred: p.Deferred, ledger: log,
		stats: s.Stats, listener: p.Listener}
	abandons := &abandoner{cfg: cfg, batches: batches, admission: admit, hosts: hosts, known: known, origins: origins,
		ends: ends, frontier: front, abandoned: views.Abandoned, ledger: log, stats: s.Stats, listener: p.Listener}
	buffers := &batchPool{}
	hops := newHops(p.Cookies, s.Cookies, log)
	outcomes := &outcomes{cfg: cfg, limits: lim, line: line, origins: origins}
	gate := &robotsGate{robots: p.Robots, answers: p.Answers, block: p.Block, hosts: hosts, origins: origins, names: names,
		frontier: front, ledger: log}
	visits := &visits{cfg: cfg, fetcher: p.Fetcher, header: p.Header, hooks: p.Hooks, listener: p.Listener, frontier: front,
		ledger: log, known: known, feed: feed, roots: roots, admission: admit, batches: batches, abandons: abandons,
		gate: gate, limits: lim, outcomes: outcomes, hops: hops, logins: p.Logins, claims: claims,
		permits: &permits{hosts: hosts, origins: origins, putOffs: newPutOffs(), transfer: moves}}
	reading := reading{pool: newReadPool(p.NewParser, cfg.Shares), decoder: fetch.NewDecoder(cfg.Shares.windows()),
		text: p.Text, fields: p.Fields}
	workers := &workerPool{buffers: buffers, make: func() *worker { return newWorker(visits, &reading, traps, ranks, p.Archive, buffers) }}
	links := &Links{hosts: hosts, outbox: out.outbox, claims: claims, holds: hold, pool: buffers, roots: roots,
		batches: batches, abandons: abandons, ledger: log}
	if p.Router == nil {
		links.left = s.Links
	}
	open := &keepOpen{cfg: cfg, feed: feed, frontier: front}

	e := &Engine{cfg: cfg, frontier: front, ledger: log, known: known, limits: lim, line: line, holds: hold,
		abandons: abandons, Links: links,
		Seeding: &Seeding{cfg: cfg, roots: roots, feed: feed, open: open, hosts: hosts, outgoing: out, holds: hold,
			admission: admit, batches: batches, abandons: abandons, ledger: log},
		Dispatches: &Dispatches{cfg: cfg, claims: claims, known: known, hosts: hosts, outbox: out.outbox, frontier: front,
			transfer: moves, workers: workers, pool: buffers, holds: hold, names: names, roots: roots, admission: admit,
			batches: batches, abandons: abandons, ledger: log},
		Checkpoints: &Checkpoints{cfg: cfg, checkpointed: p.Checkpointed, ending: make(chan struct{}), marks: s.Marks,
			hosts: hosts, known: known, outbox: out.outbox, claims: claims, ranks: ranks, traps: traps, cookies: p.Cookies,
			ends: ends, feed: feed, deferred: deferred, abandons: abandons, transfer: moves, frontier: front, ledger: log,
			stats: s.Stats},
		Inspector: &Inspector{cfg: cfg, rules: rules, robots: p.Robots, known: known, hosts: hosts, links: links,
			claims: claims, ends: ends, origins: origins, abandoned: views.Abandoned, limits: lim, counts: counts, ranks: ranks,
			keeper: keeper, frontier: front, ledger: log},
		recrawls: newRecrawls(&recrawls{cfg: cfg, known: known, feed: feed, rules: rules, roots: roots, hosts: hosts,
			names: names, ranks: ranks, abandons: abandons, transfer: moves, frontier: front, ledger: log,
			listener: p.Listener}),
		skips: &skipReports{deferred: deferred, known: known, admission: admit, abandons: abandons, ledger: log},
		stuck: &stuckGuard{origins: origins, abandons: abandons, frontier: front, listener: p.Listener},
		runner: &runner{hosts: hosts, holds: hold, line: line, workers: workers, visits: visits, frontier: front,
			stopper: stop},
		resumed: resumed{refused: s.Refused},
	}
	e.watches = []func(context.Context) error{e.Checkpoints.keepUp, func(ctx context.Context) error {
		return hold.disk.watchSpace(ctx, cfg, p.Listener)
	}, e.recrawls.keepDue, e.Checkpoints.keepDeciding, e.stuck.keepMoving, line.keepLine, e.Dispatches.keepSaying,
		keeper.keepRanks, log.Run}
	back := &restorer{hosts: hosts, roots: roots, names: names, ranks: ranks, robots: p.Robots, transfer: moves,
		frontier: front, ledger: log}
	e.resumed.broken = back.restore(s)
	e.skips.unsaid = back.unsaid
	return e
}

func newLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// A restorer puts what an earlier run has left back into the frontier.
type restorer struct {
	unsaid   []entry.Candidate // see skipReports
	hosts    *hosts
	roots    *scopeSeeds
	names    *names
	ranks    *ranking
	robots   *robots.Cache
	transfer *transfer.Endpoint
	frontier *frontier.Frontier
	ledger   *ledger.Ledger
}

// restore puts what waits back into the frontier, behind the delays that robots.txt files ask for. Hosts owe their full
// delay again: nobody knows when their last request was.
func (r *restorer) restore(s *recovery.State) error {
	if err := r.roots.recallRoots(); err != nil {
		return err
	}
	if r.hosts.slices == nil {
		r.robots.EachDelay(func(origin string, delay time.Duration) { // of hosts that no checkpoint knows
			r.frontier.SetDelay(item.HostOf(origin), delay)
			r.frontier.Restore(item.HostOf(origin))
		})
	}
	var enc entry.Encoder
	var decided []entry.Candidate
	queue := s.Queue()
	for i := range queue {
		it := &queue[i]
		if s.Guessed[it.URL] { // or else the next process may decide it again, with the frontier having it from this one
			r.ranks.lift(it)
			enc.Found(it)
			decided = append(decided, entry.Candidate{Host: it.Host(), Item: *it})
		}
	}
	r.ranks.rankAll(queue)
	for _, it := range queue {
		r.putBack(it)
	}
	r.ledger.Enqueue(enc.Writer)
	r.transfer.Committed(decided)
	err := s.EachAbandoned(func(it item.Item) error {
		r.ranks.rank(&it)
		r.putBack(it)
		return nil
	})
	r.restoreDelays()
	r.unsaid = slices.SortedFunc(maps.Values(s.Unexplained),
		func(a, b entry.Candidate) int { return strings.Compare(a.Item.URL, b.Item.URL) })
	s.Release()
	return err
}

// restoreDelays has the slices that are known, where hosts are cut into several, owe what robots.txt files ask for.
// Those that come later are told at their first visit (learnDelay).
func (r *restorer) restoreDelays() {
	if r.hosts.slices == nil {
		return
	}
	r.robots.EachDelay(func(origin string, delay time.Duration) {
		for slice := range r.hosts.slicesOf(origin) {
			r.frontier.SetDelay(slice, delay)
			r.frontier.Restore(slice)
		}
	})
}

// putBack puts an item that waited in an earlier run back into the frontier.
func (r *restorer) putBack(it item.Item) {
	it.Path = r.names.intern(it.Path)
	r.frontier.Restore(r.names.intern(r.hosts.slices.Of(it.URL)), it)
}

// sliceOf is the slice that a candidate's URL is in.
func (h *hosts) sliceOf(c *entry.Candidate) string { return h.slices.At(c.Host, c.Item.URL) }

// slicesOf yields the slices of an origin's host: that host, or where it is cut into several, those that the frontier
// knows.
func (h *hosts) slicesOf(origin string) iter.Seq[string] {
	host := item.HostOf(origin)
	return func(yield func(string) bool) {
		if h.slices == nil {
			yield(host)
			return
		}
		for slice := range h.slices.All(host) {
			if h.frontier.Has(slice) && !yield(slice) {
				return
			}
		}
	}
}

// admit takes a root into scope. A seed, which the user named, is trusted and may be at a private address.
func (s *scopeSeeds) admit(u weburl.URL, seed bool) {
	s.scope.AddSeed(u)
	if !seed {
		return
	}
	s.line.addSeed(u.Origin(), s.origins.hash(u.Origin()))
	if s.trusted != nil {
		s.trusted.Add(u.Origin())
		if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
			s.trusted.Add(secure.Origin()) // where the seed's host leads to TLS; never the other way round
		}
	}
	s.fetcher.Allow(u.Host())
}

// Run crawls from the seeds and from what waits until nothing waits, a limit is reached (an error that is
// policy.ErrLimit) or the context ends (its error). Requests under way may then go on for Config.Grace. All that was
// fetched is durable when it returns, unless the error is another than those.
func (e *Engine) Run(ctx context.Context, seeds []weburl.URL, workers int) error {
	handing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.runner.stopper.cancel = stop
	if e.cfg.Time > 0 {
		t := time.AfterFunc(e.cfg.Time, func() { stop(policy.LimitReached(e.cfg.Time.String())) })
		defer t.Stop()
	}
	e.Inspector.keeper.running.Store(true)
	defer e.ledger.End()
	fetching, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(handing, func() { time.AfterFunc(e.cfg.Grace, abort) })()

	if e.resumed.broken != nil {
		return e.resumed.broken
	}
	if e.Inspector.hosts.router == nil { // of several nodes each logs in for the hosts that it has
		if err := e.runner.visits.logins.EnterAll(handing); err != nil && handing.Err() == nil {
			return err
		}
	}
	if err := e.limits.recallHosts(handing); err != nil && handing.Err() == nil { // if it has ended, nothing is fetched
		return err
	}
	if err := e.Links.takeLeft(); err != nil {
		return err
	}
	if err := e.Seeding.roots.tellRoots(); err != nil {
		return err
	}
	if err := e.Seeding.seed(seeds); err != nil {
		return err
	}
	if err := e.skips.sayLeftOut(); err != nil {
		return err
	}
	e.limits.stopAtLimits()
	if e.holds.disk.least > 0 {
		if err := e.holds.disk.look(e.cfg.Now(), e.abandons.listener); err != nil {
			return err
		}
	}
	if err := e.crawl(handing, fetching, workers); err != nil {
		return err
	}
	return e.end(ctx, handing)
}

// end makes the last commit. It returns why the run stopped, nil when nothing waits.
func (e *Engine) end(ctx, handing context.Context) error {
	stopped := context.Cause(handing)
	if errors.Is(stopped, policy.ErrLimit) && !e.cfg.Recrawl.Keep && e.frontier.Counts().URLs == 0 && !e.known.pendingDedup() &&
		e.Seeding.feed.ended() {
		stopped = nil // the limit was just enough
	}
	if stopped == nil {
		if err := e.skips.writeDeferred(handing); err != nil {
			if handing.Err() == nil {
				return err
			}
			stopped = context.Cause(handing) // the next run goes on with it
		}
	}
	if err := e.Checkpoints.lastCheckpoint(ctx); err != nil {
		return err
	}
	if err := e.ledger.Close(); err != nil {
		return err
	}
	e.Dispatches.sayLast()
	if stopped == nil {
		return e.stuck.err()
	}
	return stopped
}

// lastCheckpoint lets the next run begin soon. Who has stopped the run does not wait for it longer than for requests
// under way: what is not in a checkpoint is in the journal.
func (c *Checkpoints) lastCheckpoint(ctx context.Context) error {
	close(c.ending) // a snapshot does not keep it waiting
	if ctx.Err() != nil {
		patient, done := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Grace)
		defer done()
		ctx = patient
	}
	err := c.checkpoint(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// crawl runs the workers, and beside them the ledger, checkpoints and the look at the disk, until the frontier is
// dry, handing ends, or one of them fails.
func (e *Engine) crawl(handing, fetching context.Context, workers int) error {
	committing, done := context.WithCancel(context.WithoutCancel(handing))
	defer done()
	all, _ := errgroup.WithContext(fetching)
	for _, watch := range e.watches {
		all.Go(func() error {
			err := watch(committing)
			if err != nil {
				e.runner.stopper.stop(err)
			}
			return err
		})
	}
	feeding, enough := context.WithCancel(handing)
	defer enough()
	for _, take := range []func(context.Context) error{e.Seeding.admitList, e.Seeding.takeList} {
		all.Go(func() error {
			err := take(feeding)
			if err != nil {
				e.runner.stopper.stop(err)
			}
			return err
		})
	}
	e.Seeding.open.keepFrontierOpen()
	err := e.runner.employ(handing, fetching, workers)
	for err == nil && handing.Err() == nil {
		// The frontier was dry, but for what a merge decides, and what is to be visited again.
		if e.known.pendingDedup() || e.frontier.Counts().URLs > 0 {
			err = e.Checkpoints.decide(fetching)
		} else if !e.recrawls.awaitDue(handing) {
			break
		}
		if canceled(err) {
			err = nil
			break
		}
		if err == nil {
			err = e.runner.employ(handing, fetching, workers)
		}
	}
	done()
	enough()
	if failed := all.Wait(); err == nil {
		err = failed
	}
	return err
}

// A runner runs the workers.
type runner struct {
	interrupts interruptScope
	hosts      *hosts
	holds      *holds
	line       *line
	workers    *workerPool
	visits     *visits
	frontier   *frontier.Frontier
	stopper    *stopper
}

// employ lets workers work until the frontier is dry, handing ends, or one of them fails.
func (c *runner) employ(handing, fetching context.Context, workers int) error {
	crew, working := errgroup.WithContext(handing)
	for range workers {
		crew.Go(func() error { return c.work(working, fetching) })
	}
	return crew.Wait()
}

// stopAtLimits stops a run at once whose limits earlier runs have used up.
func (lim *limits) stopAtLimits() {
	switch {
	case lim.quota.Pages() > 0 && lim.stats.NewPages() >= lim.quota.Pages():
		lim.stopper.stop(lim.pagesReached())
	case lim.cfg.Bytes > 0 && lim.bytes.Load() >= lim.cfg.Bytes:
		lim.stopper.stop(lim.bytesReached())
	}
}

func (c *runner) work(handing, fetching context.Context) error {
	for {
		c.holds.disk.await(handing)
		c.holds.await(handing)
		c.holds.hold(handing)
		v, err := c.frontier.Next(handing)
		switch {
		case errors.Is(err, frontier.ErrDry), handing.Err() != nil && v == nil:
			return nil
		case err != nil:
			return err
		}
		if c.holds.disk.short() || c.holds.held() { // since it began to wait for a host
			c.frontier.Postpone(v, 0)
			continue
		}
		if wait, held := c.line.holdsBack(v.URL); held {
			c.frontier.Postpone(v, wait)
			continue
		}
		w := c.workers.take()
		if c.hosts.router != nil {
			w.asks = c.hosts.politenessHost(v)
			c.workers.begin(w, v.Host, w.asks)
		}
		err = w.visit(c.interrupts.join(fetching), v)
		if c.workers.rest(w); err != nil {
			err = fmt.Errorf("crawl %s: %w", v.URL, err)
			c.stopper.stop(err)
			return err
		}
	}
}

// sayLeftOut says of URLs why they are left out that a merge had to decide when the last process ended, and that are
// news without one.
func (r *skipReports) sayLeftOut() error {
	for part := range slices.Chunk(r.unsaid, maxKept) {
		var b batch
		for i := range part {
			r.admission.route(&b, &part[i])
		}
		if err := r.abandons.commitBatch(&b); err != nil {
			return err
		}
	}
	r.unsaid = nil
	return nil
}

// seed takes the seeds in, as the crawl's rules have them. Where a redirect leads back to how the user wrote them, that
// is in scope.
func (s *Seeding) seed(seeds []weburl.URL) error {
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = s.roots.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxKept {
		to := min(from+maxKept, len(seeds))
		if err := s.takeSeeds(seeds[from:to], known[from:to], nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// admitSeed takes a seed into scope, and returns it as the crawl's rules have it.
func (s *scopeSeeds) admitSeed(u weburl.URL) weburl.URL {
	known := s.cfg.Canon.Apply(u)
	s.admit(u, true)
	s.scope.AddSeed(known) // without the trust: it may be another host than the user named
	return known
}

// Known is the number of URLs met within reach so far.
func (e *Engine) Known() int { return int(e.known.seen.Len()) }

// Undecided is the number of URLs of which seen has yet to decide whether they are new.
func (e *Engine) Undecided() int { return e.known.pending() }
