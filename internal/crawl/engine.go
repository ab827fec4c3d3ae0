package crawl

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumo/internal/bounded"
	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/member"
	"kumo/internal/page"
	"kumo/internal/policy"
	"kumo/internal/robots"
	"kumo/internal/seen"
	"kumo/internal/stats"
	"kumo/internal/store"
	"kumo/internal/weburl"
)

// An Engine crawls. It is used for one Run.
type Engine struct {
	cfg       Config
	frontier  *frontier.Frontier
	seen      Seen
	digests   Digests
	asides    *Asides
	shelf     *Shelf // what was given up with its origin: for the journal it waits
	answers   *Answers
	db        *seen.DB // seen, if that is on the disk
	rules     policy.Rules
	robots    *robots.Cache
	fetcher   Fetcher
	office    *office
	decoder   *fetch.Decoder
	shift     shift
	line      *line
	text      func(*page.Response, *page.Page) (*page.MainText, error)
	stats     *stats.Counter
	listener  Listener
	committer *committer
	quota     *policy.Quota
	limiter   *rate.Limiter
	archive   bool
	schedule  schedule
	tries     atomic.Int64 // visits that a URL gets before it has failed
	trusted   *weburl.Set  // origins of seeds: secrets may be sent there; nil if there are none

	router  Router  // nil: all hosts are this node's
	out     *outbox // nil without a router
	putOffs *putOffs
	left    *State // of which the outbox is to be taken in, without a router; nil if there is nothing
	newRoot func(weburl.URL)
	arrived func(t member.Transfer, hosts []string)
	pause   gate
	came    atomic.Int64 // links, seeds and hosts, in how many goes
	hand    handing

	bytes   atomic.Int64 // over the wire, all runs
	anyLost atomic.Bool  // whether lost has any

	refused   int        // URLs of earlier runs
	stuck     stuckTally // of keepMoving
	broken    error      // of what earlier runs have left
	salt      maphash.Seed
	undecided atomic.Int64 // URLs that wait in memory for a merge
	space     space
	stop      context.CancelCauseFunc

	checking sync.Mutex    // held by the one who makes a checkpoint, or a snapshot
	ending   chan struct{} // closed when the run comes to its last checkpoint
	finished bool          // a run that stays is to end; guarded by mu
	asked    int64         // how much of the file of set-aside URLs has been written down
	unsaid   []candidate   // left out, and what is to be said of that before a run
	marks    []store.Mark  // of all record files as the run found them, those of stores that are not open now among them
	roots    *Roots        // seeds, and where they redirect to
	isRoot   *weburl.Set   // those, by the crawl's rules; nil where all are new and nobody will ask
	fed      *feed         // the list of seeds of this run

	mu        sync.Mutex      // guards all below
	settled   map[string]bool // URLs whose end is journalled, and whose visit is not given back yet
	told      map[string]bool // URLs of which an earlier run has said that their host could not be had
	shared    *bounded.Recent[string, string]
	offs      map[string]int64
	sums      stats.Sums                        // as the journal has them
	listed    *bounded.Recent[uint64, int32]    // how deep the visits were for which the sitemaps of origins were taken in
	wanted    *bounded.Recent[uint64, bool]     // origins whose robots.txt is on its way
	idle      []*worker                         // between visits
	visits    map[*worker]visiting              // under way, where hosts may be other nodes'
	standings *bounded.Recent[uint64, standing] // of origins that failed lately
	lost      *losses
	reach     Reach
}

// New makes an engine that goes on from a state.
func New(cfg Config, p Parts, s *State) *Engine {
	cfg = cfg.withDefaults()
	e := &Engine{
		cfg: cfg, frontier: s.views.Frontier, seen: s.views.Seen, digests: s.views.Digests, asides: p.Asides, answers: p.Answers, robots: p.Robots, fetcher: p.Fetcher,
		rules: policy.Rules{Scope: p.Scope, Block: p.Block, Include: cfg.Include, Exclude: cfg.Exclude, MaxDepth: cfg.Depth,
			MaxRedirects: cfg.MaxRedirects, Embeds: cfg.Embeds},
		trusted: weburl.NewSet(), office: newOffice(p.NewParser, cfg.Shares), decoder: fetch.NewDecoder(cfg.Shares.windows()),
		text: p.Text, stats: s.Stats, listener: p.Listener,
		quota: policy.NewQuota(cfg.Pages, cfg.PagesPerHost, s.Stats.NewPages()), limiter: newLimiter(cfg.Rate), router: p.Router, newRoot: p.NewRoot, arrived: p.Arrived,
		shelf: s.views.Shelf, settled: map[string]bool{}, told: s.toldOf, offs: map[string]int64{}, lost: newLosses(),
		shared: bounded.NewRecent[string, string](maxShared), wanted: bounded.NewRecent[uint64, bool](maxWanted), listed: bounded.NewRecent[uint64, int32](maxListed),
		standings: bounded.NewRecent[uint64, standing](maxStandings), salt: maphash.MakeSeed(),
	}
	e.tries.Store(int64(cfg.Tries))
	e.archive, e.schedule, e.ending = p.Archive, newSchedule(), make(chan struct{})
	e.line = newLine(p.Fetcher, cfg.OutageWait)
	e.putOffs = newPutOffs()
	e.hand.arrivals = s.arrivals.copy()
	e.db, _ = e.seen.(*seen.DB)
	e.asked, e.roots, e.marks, e.refused = s.askedTo, p.Roots, s.Marks, s.refused
	if e.fed = newFeed(p.Seeds, s.lists); p.NoSecrets {
		e.trusted = nil
	}
	e.knowRoots()
	e.undecided.Store(int64(len(s.undecided)))
	if e.space.free = p.Free; p.Free != nil {
		e.space.least = cfg.MinFree
	}
	e.bytes.Store(s.Stats.Totals().Bytes)
	e.committer = newCommitter(p, cfg, e.journalCounts)
	if e.router != nil {
		e.out = newOutbox(cfg, s)
	} else if len(s.outbox) > 0 {
		e.left = &State{outbox: s.outbox}
	}
	e.broken = e.restore(s)
	return e
}

func newLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// restore puts what waits back into the frontier, behind the delays that robots.txt files ask for. Hosts owe their full delay again: nobody
// knows when their last request was.
func (e *Engine) restore(s *State) error {
	if err := e.recallRoots(); err != nil {
		return err
	}
	e.robots.Each(func(origin string, r *robots.Rules) { // of hosts that no checkpoint knows
		if delay, asked := r.Delay(); asked {
			e.frontier.SetDelay(hostOf(origin), delay)
			e.frontier.Restore(hostOf(origin))
		}
	})
	var decided encoder
	for _, w := range s.queue() {
		host := e.intern(w.host)
		w.item.Path = e.intern(w.item.Path)
		if s.guessed[w.item.URL] { // or else the next process may decide it again, with the frontier having it from this one
			decided.found(host, &w.item)
		}
		e.frontier.Restore(host, w.item)
	}
	e.committer.enqueue(decided.b)
	err := s.shelved(func(host string, it frontier.Item) error {
		it.Path = e.intern(it.Path)
		e.frontier.Restore(e.intern(host), it)
		return nil
	})
	e.unsaid = slices.SortedFunc(maps.Values(s.unsaid), func(a, b candidate) int { return strings.Compare(a.item.URL, b.item.URL) })
	s.waiting, s.guessed, s.unsaid, s.undecided, s.offShelf, s.onShelf, s.outbox = nil, nil, nil, nil, nil, 0, nil // they are large, and the state may live on
	return err
}

// admit takes a root into scope. A seed, which the user named, is trusted and may be at a private address.
func (e *Engine) admit(u weburl.URL, seed bool) {
	e.rules.Scope.AddSeed(u)
	if !seed {
		return
	}
	if e.trusted != nil {
		e.trusted.Add(u.Origin())
		if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
			e.trusted.Add(secure.Origin()) // where the seed's host leads to TLS; never the other way round
		}
	}
	if namesAddress(u.Hostname()) {
		e.fetcher.Allow(u.Host())
	}
}

// Run crawls from the seeds and from what waits until nothing waits, a limit is reached (an error that is policy.ErrLimit) or the
// context ends (its error). Requests under way may then go on for Config.Grace. All that was fetched is durable when it returns,
// unless the error is another than those.
func (e *Engine) Run(ctx context.Context, seeds []weburl.URL, workers int) error {
	handing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.stop = stop
	if e.cfg.Time > 0 {
		t := time.AfterFunc(e.cfg.Time, func() { stop(policy.LimitReached(e.cfg.Time.String())) })
		defer t.Stop()
	}
	defer e.committer.end()
	fetching, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(handing, func() { time.AfterFunc(e.cfg.Grace, abort) })()

	if e.broken != nil {
		return e.broken
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
	if e.space.least > 0 {
		if err := e.space.look(e.cfg.Now(), e.listener); err != nil {
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
	if errors.Is(stopped, policy.ErrLimit) && !e.cfg.Recrawl.Keep && e.frontier.Counts().URLs == 0 && !e.wavers() && e.fed.ended() {
		stopped = nil // the limit was just enough
	}
	if stopped == nil {
		if err := e.writeAsides(handing); err != nil {
			if handing.Err() == nil {
				return err
			}
			stopped = context.Cause(handing) // the next run goes on with it
		}
	}
	if err := e.lastCheckpoint(ctx); err != nil {
		return err
	}
	if err := e.committer.close(); err != nil {
		return err
	}
	if stopped == nil {
		return e.stuck.err()
	}
	return stopped
}

// lastCheckpoint lets the next run begin soon. Who has stopped the run does not wait for it longer than for requests under way: what is
// not in a checkpoint is in the journal.
func (e *Engine) lastCheckpoint(ctx context.Context) error {
	close(e.ending) // a snapshot does not keep it waiting
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

// crawl runs the workers, and beside them the committer, checkpoints and the look at the disk, until the frontier is dry, handing ends, or one of them fails.
func (e *Engine) crawl(handing, fetching context.Context, workers int) error {
	committing, done := context.WithCancel(context.WithoutCancel(handing))
	defer done()
	all, _ := errgroup.WithContext(fetching)
	for _, watch := range []func(context.Context) error{e.keepUp, e.watchSpace, e.keepDue, e.keepDeciding, e.keepMoving, e.keepLine, e.committer.run} {
		all.Go(func() error {
			err := watch(committing)
			if err != nil {
				e.stop(err)
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
				e.stop(err)
			}
			return err
		})
	}
	e.stay()
	err := e.employ(handing, fetching, workers)
	for err == nil && handing.Err() == nil {
		// The frontier was dry, but for what a merge decides, and what is to be visited again.
		if e.wavers() || e.frontier.Counts().URLs > 0 {
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
	case e.cfg.Pages > 0 && e.stats.NewPages() >= e.cfg.Pages:
		e.stop(e.pagesReached())
	case e.cfg.Bytes > 0 && e.bytes.Load() >= e.cfg.Bytes:
		e.stop(e.bytesReached())
	}
}

func (e *Engine) work(handing, fetching context.Context) error {
	for {
		e.space.await(handing)
		e.await(handing)
		e.hold(handing)
		v, err := e.frontier.Next(handing)
		switch {
		case errors.Is(err, frontier.ErrDry), handing.Err() != nil && v == nil:
			return nil
		case err != nil:
			return err
		}
		if e.space.short() || e.held() { // since it began to wait for a host
			e.frontier.Postpone(v, 0)
			continue
		}
		w := e.worker()
		e.begin(w, v.Host, asker(v))
		err = w.visit(e.shift.join(fetching), v)
		if e.rest(w); err != nil {
			err = fmt.Errorf("crawl %s: %w", v.URL, err)
			e.stop(err)
			return err
		}
	}
}

// worker takes a worker for a visit, the one that was used last: so only as many keep a batch as visits are under way at once.
func (e *Engine) worker() *worker {
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := len(e.idle) - 1; last >= 0 {
		w := e.idle[last]
		e.idle = e.idle[:last]
		return w
	}
	return &worker{Engine: e}
}

func (e *Engine) rest(w *worker) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended(w)
	e.idle = append(e.idle, w)
}

// sayLeftOut says of URLs why they are left out that a merge had to decide when the last process ended, and that are news without one.
func (e *Engine) sayLeftOut() error {
	for part := range slices.Chunk(e.unsaid, maxKept) {
		var b batch
		for i := range part {
			e.sort(&b, &part[i], part[i].item.Path)
		}
		if err := e.take(&b, nil, nil); err != nil {
			return err
		}
	}
	e.unsaid = nil
	return nil
}

// seed takes the seeds in, as the crawl's rules have them. Where a redirect leads back to how the user wrote them, that is in scope.
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

// journalCounts journals what has been counted since the last commit and follows from no other entry.
func (e *Engine) journalCounts(enc *encoder) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if sums := e.stats.Sums(); sums != e.sums {
		enc.sums(sums)
		e.sums = sums
	}
	for host, n := range e.offs {
		enc.off(host, n)
	}
	clear(e.offs)
}

// Known is the number of URLs met within reach so far.
func (e *Engine) Known() int { return int(e.seen.Len()) }
