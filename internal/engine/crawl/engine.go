package crawl

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
	"kumo/internal/content/login"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/exchange"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal"
	"kumo/internal/state/ledger"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/transfer"
)

// An Engine crawls. It is used for one Run. What changes while it runs is in parts that have locks of their own.
type Engine struct {
	cfg      Config
	frontier *frontier.Frontier
	slices   *item.Slices // the frontier's, of which each is a host to it, to politeness and to the router
	known    known
	robots   *robots.Cache
	rules    policy.Rules
	depths   bool // any URL may lie too deep
	header   func(trusted bool) http.Header
	fetcher  Fetcher
	reading  reading
	stats    *stats.Counter
	listener Listener
	hooks    Hooks
	ranks    *ranking
	running  atomic.Bool
	ledger   *ledger.Ledger
	durable  *durablePages
	limits   limits
	line     *line
	schedule *schedule
	origins  *origins
	ends     *ends
	names    *names
	offHosts offHosts
	workers  workerPool
	files    files
	roots    roots
	peers    peers
	claims   *claims // nil where links are not claimed
	cookies  *cookies.Jar
	logins   *login.Sessions
	hops     *hops // nil where no cookies are kept
	control  control
	stuck    stuckTally // of keepMoving
	attempts attempts
	traps    trapGuard
	resumed  resumed
}

// known is what the crawl has met.
type known struct {
	seen      recovery.Seen
	db        *seen.DB // seen, if that is on the disk
	digests   recovery.Digests
	undecided atomic.Int64 // URLs that wait in memory for a merge
}

// reading is what reads answers.
type reading struct {
	pool    *readPool
	decoder *fetch.Decoder
	text    func(*page.Response, *page.Page) (*page.MainText, error)
	fields  func(*page.Response, *page.Page) ([]page.Fields, error)
}

// limits are what bounds the crawl.
type limits struct {
	quota *policy.Quota
	rate  *rate.Limiter
	tries atomic.Int64 // visits that a URL gets before it has failed
	bytes atomic.Int64 // over the wire, all runs
}

// files are what the engine writes beside the journal and the stores' records.
type files struct {
	deferred     *statefile.Deferred
	deferredRead int64                // how much of deferred URLs has been written down
	abandoned    *statefile.Abandoned // what was given up with its origin: for the journal it waits
	answers      *statefile.RobotsAnswers
	archive      bool // records are archived
	// of all record files as the run found them, those of stores that are not open now among them
	marks []store.Mark
}

// roots are what the crawl begins with.
type roots struct {
	file    *statefile.ScopeSeeds // seeds, and where they redirect to
	all     *weburl.Set           // those, by the crawl's rules; nil where all are new and nobody will ask
	trusted *weburl.Set           // origins of seeds: secrets may be sent there; nil if there are none
	feed    *feed                 // the list of seeds of this run
	tell    func(weburl.URL)      // other nodes, of a new one; may be nil
}

// peers are the other nodes of the crawl.
type peers struct {
	router   Router           // nil: all hosts are this node's
	outbox   *exchange.Outbox // nil without a router
	full     valve            // shut while more is in the outbox than may be
	putOffs  *putOffs
	received atomic.Int64 // links, seeds and hosts, in how many goes
	taken    atomic.Int64 // URLs that came as links and were news
	transfer *transfer.Endpoint
}

// control is what holds back, or ends, a run.
type control struct {
	stop     context.CancelCauseFunc
	checking sync.Mutex // held by the one who makes a checkpoint, or a snapshot
	// is told of checkpoints; may be nil
	checkpointed func(at, relies journal.Position, marks []store.Mark)
	ending       chan struct{} // closed when the run comes to its last checkpoint
	stays        keepOpen
	disk         diskGuard
	pause        valve
	interrupts   interruptScope
}

// resumed is what earlier runs have left to be done.
type resumed struct {
	refused int               // URLs that are none, dropped
	broken  error             // why the engine cannot run
	unsaid  []entry.Candidate // left out, and what is to be said of that before a run
	outbox  entry.Links       // for others, to be taken in here without a router; nil if there are none
}

// New makes an engine that goes on from a state.
func New(cfg Config, p Parts, s *recovery.State) *Engine {
	cfg = cfg.withDefaults()
	e := &Engine{cfg: cfg, frontier: s.Views.Frontier, slices: s.Views.Frontier.Slices(), robots: p.Robots,
		fetcher: p.Fetcher, stats: s.Stats,
		listener: p.Listener, hooks: p.Hooks, ranks: newRanking(p.Ranks, cfg.Prefer, p.Listener),
		known: known{seen: s.Views.Seen, digests: s.Views.Digests},
		reading: reading{pool: newReadPool(p.NewParser, cfg.Shares), decoder: fetch.NewDecoder(cfg.Shares.windows()),
			text: p.Text, fields: p.Fields},
		rules: policy.Rules{Scope: p.Scope, Block: p.Block, Include: cfg.Include, Exclude: cfg.Exclude, MaxDepth: cfg.Depth,
			MaxRedirects: cfg.MaxRedirects, Embeds: cfg.Embeds, Overrides: cfg.Overrides},
		limits:   limits{quota: policy.NewQuota(cfg.pageLimits(), s.Stats.NewPages()), rate: newLimiter(cfg.Rate)},
		schedule: newSchedule(), ends: newEnds(s.ReportedURLs), names: newNames(),
		offHosts: offHosts{links: map[string]int64{}},
		line:     newLine(p.Fetcher, cfg.OutageWait),
		files: files{deferred: p.Deferred, deferredRead: s.DeferredUpTo, abandoned: s.Views.Abandoned, answers: p.Answers,
			archive: p.Archive, marks: s.Marks},
		roots:   roots{file: p.Roots, feed: newFeed(p.Seeds, s.SeedLists), tell: p.NewRoot},
		peers:   peers{router: p.Router, putOffs: newPutOffs()},
		control: control{ending: make(chan struct{}), checkpointed: p.Checkpointed},
		resumed: resumed{refused: s.Refused},
		durable: newDurablePages(s.Stats.Pages()),
		traps:   newTrapGuard(&cfg, s.Traps),
	}
	e.depths, e.header = cfg.BoundsDepth(), p.Header
	e.known.db, _ = e.known.seen.(*seen.DB)
	e.known.undecided.Store(int64(len(s.UndecidedURLs)))
	e.limits.tries.Store(int64(cfg.Tries))
	e.limits.bytes.Store(s.Stats.Totals().Bytes)
	e.origins = newOrigins(cfg.Now, e.line)
	if !p.NoSecrets {
		e.roots.trusted = weburl.NewSet()
	}
	e.knowRoots()
	if e.control.disk.free = p.Free; p.Free != nil {
		e.control.disk.least = cfg.MinFree
	}
	e.ledger = ledger.New(ledger.Config{Stores: e.ranks.stores(p.Stores), Journal: p.Journal, Every: cfg.Commit,
		Room: cfg.Shares.pending(), Now: cfg.Now,
		Begin: entry.AppendTime, Mark: entry.AppendMark, Extra: e.appendCounts, Durable: p.Durable})
	e.peers.transfer = transfer.New(transfer.Config{Ledger: e.ledger, Frontier: e.frontier, DB: e.known.db,
		Abandoned: e.files.abandoned, Quota: e.pageQuota(), Now: cfg.Now, Ours: e.ours, Hash: e.origins.hash,
		Intern: e.names.intern, Reported: e.ends.wasReported, Wait: e.awaitTransfer, Removed: e.hostsRemoved,
		Received: p.Arrived, Rank: e.ranks.rankAll, Give: e.giveArrived, Worth: e.ranks.worth(),
		Cookies: p.Cookies}, s.Unsettled)
	if cfg.Claims && p.Router != nil {
		e.claims = newClaims(e.slices, &p, s.Tenures)
	}
	e.logins = p.Logins
	e.takeCookies(p.Cookies, s.Cookies)
	e.openOutbox(s.Links)
	e.resumed.broken = e.restore(s)
	return e
}

func newLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// restore puts what waits back into the frontier, behind the delays that robots.txt files ask for. Hosts owe their full
// delay again: nobody knows when their last request was.
func (e *Engine) restore(s *recovery.State) error {
	if err := e.recallRoots(); err != nil {
		return err
	}
	if e.slices == nil {
		e.robots.EachDelay(func(origin string, delay time.Duration) { // of hosts that no checkpoint knows
			e.frontier.SetDelay(item.HostOf(origin), delay)
			e.frontier.Restore(item.HostOf(origin))
		})
	}
	var enc entry.Encoder
	var decided []entry.Candidate
	queue := s.Queue()
	for i := range queue {
		it := &queue[i]
		if s.Guessed[it.URL] { // or else the next process may decide it again, with the frontier having it from this one
			e.ranks.lift(it)
			enc.Found(it)
			decided = append(decided, entry.Candidate{Host: it.Host(), Item: *it})
		}
	}
	e.ranks.rankAll(queue)
	for _, it := range queue {
		e.putBack(it)
	}
	e.ledger.Enqueue(enc.Writer)
	e.peers.transfer.Committed(decided)
	err := s.EachAbandoned(func(it item.Item) error {
		e.ranks.rank(&it)
		e.putBack(it)
		return nil
	})
	e.restoreDelays()
	e.resumed.unsaid = slices.SortedFunc(maps.Values(s.Unexplained),
		func(a, b entry.Candidate) int { return strings.Compare(a.Item.URL, b.Item.URL) })
	s.Release()
	return err
}

// restoreDelays has the slices that are known, where hosts are cut into several, owe what robots.txt files ask for.
// Those that come later are told at their first visit (learnDelay).
func (e *Engine) restoreDelays() {
	if e.slices == nil {
		return
	}
	e.robots.EachDelay(func(origin string, delay time.Duration) {
		for slice := range e.slicesOf(origin) {
			e.frontier.SetDelay(slice, delay)
			e.frontier.Restore(slice)
		}
	})
}

// putBack puts an item that waited in an earlier run back into the frontier.
func (e *Engine) putBack(it item.Item) {
	it.Path = e.names.intern(it.Path)
	e.frontier.Restore(e.names.intern(e.slices.Of(it.URL)), it)
}

// sliceOf is the slice that a candidate's URL is in.
func (e *Engine) sliceOf(c *entry.Candidate) string { return e.slices.At(c.Host, c.Item.URL) }

// slicesOf yields the slices of an origin's host: that host, or where it is cut into several, those that the frontier
// knows.
func (e *Engine) slicesOf(origin string) iter.Seq[string] {
	host := item.HostOf(origin)
	return func(yield func(string) bool) {
		if e.slices == nil {
			yield(host)
			return
		}
		for slice := range e.slices.All(host) {
			if e.frontier.Has(slice) && !yield(slice) {
				return
			}
		}
	}
}

// admit takes a root into scope. A seed, which the user named, is trusted and may be at a private address.
func (e *Engine) admit(u weburl.URL, seed bool) {
	e.rules.Scope.AddSeed(u)
	if !seed {
		return
	}
	e.line.addSeed(u.Origin(), e.origins.hash(u.Origin()))
	if e.roots.trusted != nil {
		e.roots.trusted.Add(u.Origin())
		if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
			e.roots.trusted.Add(secure.Origin()) // where the seed's host leads to TLS; never the other way round
		}
	}
	e.fetcher.Allow(u.Host())
}

// Run crawls from the seeds and from what waits until nothing waits, a limit is reached (an error that is
// policy.ErrLimit) or the context ends (its error). Requests under way may then go on for Config.Grace. All that was
// fetched is durable when it returns, unless the error is another than those.
func (e *Engine) Run(ctx context.Context, seeds []weburl.URL, workers int) error {
	handing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.control.stop = stop
	if e.cfg.Time > 0 {
		t := time.AfterFunc(e.cfg.Time, func() { stop(policy.LimitReached(e.cfg.Time.String())) })
		defer t.Stop()
	}
	e.running.Store(true)
	defer e.ledger.End()
	fetching, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(handing, func() { time.AfterFunc(e.cfg.Grace, abort) })()

	if e.resumed.broken != nil {
		return e.resumed.broken
	}
	if e.peers.router == nil { // of several nodes each logs in for the hosts that it has
		if err := e.logins.EnterAll(handing); err != nil && handing.Err() == nil {
			return err
		}
	}
	if err := e.recallHosts(handing); err != nil && handing.Err() == nil { // if it has ended, nothing is fetched
		return err
	}
	if err := e.takeLeft(); err != nil {
		return err
	}
	if err := e.tellRoots(); err != nil {
		return err
	}
	if err := e.seed(seeds); err != nil {
		return err
	}
	if err := e.sayLeftOut(); err != nil {
		return err
	}
	e.stopAtLimits()
	if e.control.disk.least > 0 {
		if err := e.control.disk.look(e.cfg.Now(), e.listener); err != nil {
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
	if errors.Is(stopped, policy.ErrLimit) && !e.cfg.Recrawl.Keep && e.frontier.Counts().URLs == 0 && !e.pendingDedup() &&
		e.roots.feed.ended() {
		stopped = nil // the limit was just enough
	}
	if stopped == nil {
		if err := e.writeDeferred(handing); err != nil {
			if handing.Err() == nil {
				return err
			}
			stopped = context.Cause(handing) // the next run goes on with it
		}
	}
	if err := e.lastCheckpoint(ctx); err != nil {
		return err
	}
	if err := e.ledger.Close(); err != nil {
		return err
	}
	e.sayLast()
	if stopped == nil {
		return e.stuck.err()
	}
	return stopped
}

// lastCheckpoint lets the next run begin soon. Who has stopped the run does not wait for it longer than for requests
// under way: what is not in a checkpoint is in the journal.
func (e *Engine) lastCheckpoint(ctx context.Context) error {
	close(e.control.ending) // a snapshot does not keep it waiting
	if ctx.Err() != nil {
		patient, done := context.WithTimeout(context.WithoutCancel(ctx), e.cfg.Grace)
		defer done()
		ctx = patient
	}
	err := e.checkpoint(ctx)
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
	for _, watch := range []func(context.Context) error{e.keepUp, e.watchSpace, e.keepDue, e.keepDeciding, e.keepMoving,
		e.keepLine, e.keepSaying, e.keepRanks, e.ledger.Run} {
		all.Go(func() error {
			err := watch(committing)
			if err != nil {
				e.control.stop(err)
			}
			return err
		})
	}
	feeding, enough := context.WithCancel(handing)
	defer enough()
	for _, take := range []func(context.Context) error{e.admitList, e.feed} {
		all.Go(func() error {
			err := take(feeding)
			if err != nil {
				e.control.stop(err)
			}
			return err
		})
	}
	e.keepFrontierOpen()
	err := e.employ(handing, fetching, workers)
	for err == nil && handing.Err() == nil {
		// The frontier was dry, but for what a merge decides, and what is to be visited again.
		if e.pendingDedup() || e.frontier.Counts().URLs > 0 {
			err = e.decide(fetching)
		} else if !e.awaitDue(handing) {
			break
		}
		if canceled(err) {
			err = nil
			break
		}
		if err == nil {
			err = e.employ(handing, fetching, workers)
		}
	}
	done()
	enough()
	if failed := all.Wait(); err == nil {
		err = failed
	}
	return err
}

// employ lets workers work until the frontier is dry, handing ends, or one of them fails.
func (e *Engine) employ(handing, fetching context.Context, workers int) error {
	crew, working := errgroup.WithContext(handing)
	for range workers {
		crew.Go(func() error { return e.work(working, fetching) })
	}
	return crew.Wait()
}

// stopAtLimits stops a run at once whose limits earlier runs have used up.
func (e *Engine) stopAtLimits() {
	switch {
	case e.limits.quota.Pages() > 0 && e.stats.NewPages() >= e.limits.quota.Pages():
		e.control.stop(e.pagesReached())
	case e.cfg.Bytes > 0 && e.limits.bytes.Load() >= e.cfg.Bytes:
		e.control.stop(e.bytesReached())
	}
}

func (e *Engine) work(handing, fetching context.Context) error {
	for {
		e.control.disk.await(handing)
		e.await(handing)
		e.hold(handing)
		v, err := e.frontier.Next(handing)
		switch {
		case errors.Is(err, frontier.ErrDry), handing.Err() != nil && v == nil:
			return nil
		case err != nil:
			return err
		}
		if e.control.disk.short() || e.held() { // since it began to wait for a host
			e.frontier.Postpone(v, 0)
			continue
		}
		if wait, held := e.line.holdsBack(v.URL); held {
			e.frontier.Postpone(v, wait)
			continue
		}
		w := e.workers.take(e)
		if e.peers.router != nil {
			w.asks = e.politenessHost(v)
			e.workers.begin(w, v.Host, w.asks)
		}
		err = w.visit(e.control.interrupts.join(fetching), v)
		if e.workers.rest(w); err != nil {
			err = fmt.Errorf("crawl %s: %w", v.URL, err)
			e.control.stop(err)
			return err
		}
	}
}

// sayLeftOut says of URLs why they are left out that a merge had to decide when the last process ended, and that are
// news without one.
func (e *Engine) sayLeftOut() error {
	for part := range slices.Chunk(e.resumed.unsaid, maxKept) {
		var b batch
		for i := range part {
			e.route(&b, &part[i])
		}
		if err := e.commitBatch(&b); err != nil {
			return err
		}
	}
	e.resumed.unsaid = nil
	return nil
}

// seed takes the seeds in, as the crawl's rules have them. Where a redirect leads back to how the user wrote them, that
// is in scope.
func (e *Engine) seed(seeds []weburl.URL) error {
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = e.admitSeed(u)
	}
	for from := 0; from < len(seeds); from += maxKept {
		to := min(from+maxKept, len(seeds))
		if err := e.takeSeeds(seeds[from:to], known[from:to], nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// admitSeed takes a seed into scope, and returns it as the crawl's rules have it.
func (e *Engine) admitSeed(u weburl.URL) weburl.URL {
	known := e.cfg.Canon.Apply(u)
	e.admit(u, true)
	e.rules.Scope.AddSeed(known) // without the trust: it may be another host than the user named
	return known
}

// Known is the number of URLs met within reach so far.
func (e *Engine) Known() int { return int(e.known.seen.Len()) }
