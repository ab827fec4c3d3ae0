package crawl

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/engine/visit"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// An Engine crawls. It is used for one Run, and starts and stops its parts. Each part guards its own state. The
// exported parts are used by other packages.
type Engine struct {
	cfg        *Config
	frontier   *frontier.Frontier
	ledger     *ledger.Ledger
	known      *known
	limits     *limits
	outages    *outageMonitor
	holds      *holds
	abandons   *abandoner
	skips      *skipReports
	recrawls   *recrawls
	stuck      *stuckGuard
	runner     *runner
	resumed    resumed
	background []func(context.Context) error // run beside the workers until the run ends

	Links       *Links
	Seeding     *Seeding
	Dispatches  *Dispatches
	Checkpoints *Checkpoints
	Inspector   *Inspector
}

// resumed is the state of earlier runs.
type resumed struct {
	refused int   // pending URLs that cannot be fetched, dropped
	broken  error // why the engine cannot run
}

// New returns an engine that resumes from a state.
func New(config Config, p Parts, s *recovery.State) *Engine {
	config = config.withDefaults()
	p.Listener = Tee(p.Listener, Listener{})
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
	traps := newTrapGuard(cfg, cfg.NearDuplicates || p.Text != nil, s.Traps)
	line := newOutageMonitor(cfg, p.Fetcher, p.Listener, stop)
	origins := newOrigins(cfg, line)
	lim := &limits{
		cfg:     cfg,
		quota:   policy.NewQuota(cfg.pageLimits(), s.Stats.NewPages()),
		rate:    newRateLimit(cfg.Rate),
		known:   known,
		hosts:   hosts,
		traps:   traps,
		stats:   s.Stats,
		stopper: stop,
	}
	lim.tries.Store(int64(cfg.Tries))
	lim.bytes.Store(s.Stats.Totals().Bytes)
	counts := &journalCounts{stats: s.Stats, offHosts: offHosts{links: map[string]int64{}}}
	counts.durable.beginCommit(s.Stats.Pages())
	counts.durable.beginCommit(s.Stats.Pages())
	log := ledger.New(ledger.Config{Stores: ranks.stores(p.Stores), Journal: p.Journal, Every: cfg.Commit,
		MaxPending: cfg.Shares.pending(), Now: cfg.Now,
		Begin: entry.AppendTime, Mark: entry.AppendMark, Extra: counts.appendCounts, Durable: p.Durable})
	feed := newFeed(p.Seeds, s.SeedLists)
	roots := &scopeSeeds{
		cfg:      cfg,
		file:     p.ScopeSeeds,
		announce: p.NewScopeSeed,
		scope:    p.Scope,
		outages:  line,
		origins:  origins,
		fetcher:  p.Fetcher,
		ledger:   log,
	}
	if !p.NoSecrets {
		roots.trusted = weburl.NewSet()
	}
	if length, _ := store.FindMark(s.Marks, statefile.ScopeSeedsName); roots.needsSet(length, p.Router != nil, feed) {
		roots.all = weburl.NewSet()
	}
	var claims *claims
	if cfg.Claims && p.Router != nil {
		claims = newClaims(hosts.slices, &p, s.Tenures)
	}
	out := newOutgoing(&outgoing{cfg: cfg, hosts: hosts, known: known, claims: claims, scopeSeeds: roots, ranks: ranks,
		ledger: log}, s.Links)
	hold := &holds{outages: line, outgoing: out, limits: lim, frontier: front, known: known}
	if hold.disk.free = p.Free; p.Free != nil {
		hold.disk.minFree = cfg.MinFree
	}
	keeper := &rankKeeper{ranks: ranks, hosts: hosts, outgoing: out, ledger: log}
	gate := visit.NewGate(&visit.Gate{Rules: p.Robots, Frontier: front, Block: p.Block, Hosts: hosts.slicesOf,
		Unavailable: func(origin string) bool { _, gone := origins.Abandoned(origin); return gone }})
	moved := &transferHooks{hosts: hosts, gate: gate, ends: ends, ranks: ranks, frontier: front}
	arrivals := &hostArrivals{signal: make(chan struct{}, 1)}
	moves := transfer.New(transfer.Config{Ledger: log, Frontier: front, DB: known.db, Abandoned: views.Abandoned,
		Quota: lim.pageQuota(), Now: cfg.Now, IsOwn: hosts.ours, Hash: origins.Hash, Intern: names.intern,
		Reported: ends.wasReported, WaitForRoom: hold.admit, OnRemoved: moved.hostsRemoved,
		OnReceived: arrivals.counting(p.TransferReceived), Rank: ranks.rankAll, ImportWorths: moved.addWorths,
		Worth: ranks.worth(), Cookies: p.Cookies}, s.Unsettled)

	deferred := &deferredURLs{file: p.Deferred, upTo: s.DeferredUpTo}
	admit := &admission{cfg: cfg, hooks: p.Hooks, rules: rules, known: known, names: names, traps: traps, ranks: ranks,
		deferred: p.Deferred != nil}
	batches := &batchWriter{hosts: hosts, known: known, admission: admit, outgoing: out, claims: claims, ranks: ranks,
		scopeSeeds: roots, ends: ends, counts: counts, frontier: front, transfer: moves, deferred: p.Deferred, ledger: log,
		stats: s.Stats, listener: p.Listener}
	abandons := &abandoner{
		cfg:       cfg,
		batches:   batches,
		admission: admit,
		hosts:     hosts,
		known:     known,
		origins:   origins,
		rules:     gate,
		ends:      ends,
		frontier:  front,
		abandoned: views.Abandoned,
		ledger:    log,
		stats:     s.Stats,
		listener:  p.Listener,
	}
	buffers := &batchPool{}
	hops := newHops(p.Cookies, s.Cookies, log)
	outcomes := &outcomes{cfg: cfg, limits: lim, outages: line, origins: origins}
	visits := &visits{
		cfg:        cfg,
		fetcher:    p.Fetcher,
		header:     p.Header,
		hooks:      p.Hooks,
		listener:   p.Listener,
		frontier:   front,
		ledger:     log,
		known:      known,
		feed:       feed,
		scopeSeeds: roots,
		admission:  admit,
		batches:    batches,
		abandons:   abandons,
		gate: &robotsGate{Gate: gate, answers: p.Answers, hosts: hosts, origins: origins, names: names, ledger: log,
			tdm: newTDMFiles()},
		limits:    lim,
		outcomes:  outcomes,
		hops:      hops,
		logins:    p.Logins,
		claims:    claims,
		turns:     p.Turns,
		resources: p.Resources,
		permits:   &permits{hosts: hosts, origins: origins, postponements: newPostponements(), transfer: moves},
	}
	decoder := fetch.NewDecoder(cfg.Shares.windows())
	if p.Renderer != nil && cfg.Embeds {
		admit.loaded = newLoaded()
	}
	visits.renderings = newRenderings(p.Renderer, cfg, &resources{cfg: cfg, rules: rules, robots: p.Robots,
		loaded:  admit.loaded,
		fetcher: p.Fetcher, header: p.Header, scopeSeeds: roots, limits: lim, origins: origins, frontier: front,
		hosts: hosts, known: known, names: names, ledger: log, decoder: decoder, stats: s.Stats, shared: p.Resources,
		cache: resourceCache{size: cfg.Shares.resources()}}, p.Listener)
	visits.documents = newDocuments(p.Documents, cfg.Documents, p.Listener)
	reading := reading{pool: newReadPool(p.NewParser, cfg.Shares), decoder: decoder,
		text: p.Text, fields: p.Fields}
	workers := &workerPool{
		buffers: buffers,
		make:    func() *worker { return newWorker(visits, &reading, traps, ranks, p.Archive, buffers) },
	}
	links := &Links{hosts: hosts, outbox: out.outbox, claims: claims, holds: hold, pool: buffers, scopeSeeds: roots,
		batches: batches, abandons: abandons, ledger: log}
	if p.Router == nil {
		links.leftovers = s.Links
	}
	open := &keepOpen{cfg: cfg, feed: feed, frontier: front}

	e := &Engine{
		cfg:      cfg,
		frontier: front,
		ledger:   log,
		known:    known,
		limits:   lim,
		outages:  line,
		holds:    hold,
		abandons: abandons,
		Links:    links,
		Seeding: &Seeding{cfg: cfg, scopeSeeds: roots, feed: feed, open: open, hosts: hosts, outgoing: out, holds: hold,
			admission: admit, batches: batches, abandons: abandons, ledger: log},
		Dispatches: &Dispatches{cfg: cfg, claims: claims, known: known, hosts: hosts, outbox: out.outbox, frontier: front,
			transfer: moves, workers: workers, pool: buffers, holds: hold, names: names, scopeSeeds: roots, admission: admit,
			batches: batches, abandons: abandons, ledger: log, cookies: p.Cookies},
		Checkpoints: &Checkpoints{cfg: cfg, checkpointed: p.Checkpointed, ending: make(chan struct{}), marks: s.Marks,
			hosts: hosts, known: known, outbox: out.outbox, claims: claims, ranks: ranks, traps: traps, cookies: p.Cookies,
			ends: ends, feed: feed, deferred: deferred, abandons: abandons, transfer: moves, frontier: front, ledger: log,
			stats: s.Stats},
		Inspector: &Inspector{cfg: cfg, rules: rules, robots: p.Robots, known: known, hosts: hosts, links: links,
			claims: claims, ends: ends, origins: origins, abandoned: views.Abandoned, limits: lim, counts: counts, ranks: ranks,
			keeper: keeper, frontier: front, ledger: log, renderings: visits.renderings},
		recrawls: &recrawls{
			added:      make(chan struct{}, 1),
			ended:      make(chan struct{}),
			arrivals:   arrivals,
			elsewhere:  p.IsElsewhere,
			cfg:        cfg,
			known:      known,
			claims:     claims,
			feed:       feed,
			rules:      rules,
			scopeSeeds: roots,
			hosts:      hosts,
			names:      names,
			ranks:      ranks,
			abandons:   abandons,
			transfer:   moves,
			frontier:   front,
			ledger:     log,
			listener:   p.Listener,
		},
		skips: &skipReports{deferred: deferred, known: known, admission: admit, abandons: abandons, ledger: log},
		stuck: &stuckGuard{abandons: abandons, frontier: front, listener: p.Listener},
		runner: &runner{hosts: hosts, holds: hold, outages: line, workers: workers, visits: visits, frontier: front,
			stopper: stop},
		resumed: resumed{refused: s.Refused},
	}
	e.background = []func(context.Context) error{e.Checkpoints.keepCheckpointing, func(ctx context.Context) error {
		return hold.disk.keepChecking(ctx, cfg, p.Listener)
	}, e.recrawls.keepRequeuing, e.Checkpoints.keepResolving, e.stuck.keepChecking, line.keepChecking,
		e.Dispatches.keepReporting, keeper.maintainRanks, log.Run}
	back := &restorer{hosts: hosts, scopeSeeds: roots, names: names, ranks: ranks, robots: p.Robots, transfer: moves,
		frontier: front, ledger: log}
	e.resumed.broken = back.restore(s)
	e.skips.filtered = back.filtered
	return e
}

// Run crawls from the seeds and the queues until the queues are empty, a limit is reached (an error that is
// policy.ErrLimit) or the context ends (its error). Requests under way may then continue for Config.Grace. Unless it
// returns any other error, everything that was fetched is durable.
func (e *Engine) Run(ctx context.Context, seeds []weburl.URL, workers int) error {
	handing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.runner.stopper.cancel = stop
	if e.cfg.Time > 0 {
		t := time.AfterFunc(e.cfg.Time, func() { stop(policy.LimitReached(e.cfg.Time.String())) })
		defer t.Stop()
	}
	e.Inspector.keeper.running.Store(true)
	defer e.ledger.StopWaits()
	fetching, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(handing, func() { time.AfterFunc(e.cfg.Grace, abort) })()

	if e.resumed.broken != nil {
		return e.resumed.broken
	}
	if e.Inspector.hosts.router == nil { // with several nodes, each logs in for its own hosts
		if err := e.runner.visits.logins.LogInAll(handing); err != nil && handing.Err() == nil {
			return err
		}
	}
	if err := e.limits.loadHostCounts(handing); err != nil && handing.Err() == nil { // after a stop, nothing is fetched
		return err
	}
	if err := e.Links.admitLeft(); err != nil {
		return err
	}
	if err := e.Seeding.scopeSeeds.announceRedirects(); err != nil {
		return err
	}
	if err := e.Seeding.admitSeeds(handing, seeds, nil); err != nil {
		return err
	}
	if err := e.skips.reportFiltered(); err != nil {
		return err
	}
	e.limits.stopAtLimits()
	if e.holds.disk.minFree > 0 {
		if err := e.holds.disk.check(e.cfg.Now(), e.abandons.listener); err != nil {
			return err
		}
	}
	if err := e.crawl(handing, fetching, workers); err != nil {
		return err
	}
	return e.end(ctx, handing)
}

// end makes the last commit. It returns why the run stopped, nil if the queues are empty.
func (e *Engine) end(ctx, handing context.Context) error {
	stopped := context.Cause(handing)
	if errors.Is(stopped, policy.ErrLimit) && !e.cfg.Recrawl.Continuous && e.frontier.Counts().URLs == 0 &&
		!e.known.pendingDedup() &&
		e.Seeding.feed.ended() {
		stopped = nil // the limit was reached with the last page
	}
	if stopped == nil {
		if err := e.skips.writeDeferred(handing); err != nil {
			if handing.Err() == nil {
				return err
			}
			stopped = context.Cause(handing) // the next run continues
		}
	}
	if err := e.Checkpoints.lastCheckpoint(ctx); err != nil {
		return err
	}
	if err := e.ledger.Close(); err != nil {
		return err
	}
	e.Dispatches.reportLast()
	if stopped == nil {
		return e.stuck.err()
	}
	return stopped
}

// crawl runs the workers and the background functions until the frontier is drained, handing ends, or one of them
// fails.
func (e *Engine) crawl(handing, fetching context.Context, workers int) error {
	committing, done := context.WithCancel(context.WithoutCancel(handing))
	defer done()
	all, _ := errgroup.WithContext(fetching)
	for _, watch := range e.background {
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
	for _, take := range []func(context.Context) error{e.Seeding.scopeList, e.Seeding.queueList} {
		all.Go(func() error {
			err := take(feeding)
			if err != nil {
				e.runner.stopper.stop(err)
			}
			return err
		})
	}
	e.Seeding.open.keepFrontierOpen()
	var err error
	for err == nil {
		crew, working := errgroup.WithContext(handing)
		for range workers {
			crew.Go(func() error { return e.runner.work(working, fetching) })
		}
		if err = crew.Wait(); err != nil || handing.Err() != nil {
			break
		}
		// The frontier is drained. A merge may find new URLs, and recrawls may be due later.
		if e.known.pendingDedup() || e.frontier.Counts().URLs > 0 {
			err = e.Checkpoints.resolvePending(fetching)
		} else if !e.recrawls.awaitDue(handing) {
			break
		}
		if canceled(err) {
			err = nil
			break
		}
	}
	done()
	enough()
	if failed := all.Wait(); err == nil {
		err = failed
	}
	return err
}

// Known returns the number of URLs met so far that are in scope.
func (e *Engine) Known() int { return int(e.known.seen.Len()) }

// Undecided returns the number of URLs that seen has yet to decide on.
func (e *Engine) Undecided() int { return e.known.pending() }

// Refused returns how many pending URLs were dropped, in this run or at its start, because they cannot be fetched: an
// earlier version admitted URLs that are not http or https with a host.
func (e *Engine) Refused() int { return e.resumed.refused + e.frontier.Refused() }
