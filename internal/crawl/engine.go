package crawl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumo/internal/frontier"
	"kumo/internal/page"
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
	db        *seen.DB // seen, if that is on the disk
	rules     *robots.Cache
	scope     *weburl.Scope
	block     *BlockList
	fetcher   Fetcher
	newParser func() Parser
	text      func(*page.Response, *page.Page) (*page.MainText, error)
	stats     *stats.Counter
	listener  Listener
	committer *committer
	quota     *quota
	limiter   *rate.Limiter
	trusted   map[string]bool // hosts of seeds: secrets may be sent there

	bytes   atomic.Int64 // over the wire, all runs
	anyLost atomic.Bool  // whether lost has any

	undecided atomic.Int64 // URLs that wait for a merge
	space     space
	stop      context.CancelCauseFunc

	checking sync.Mutex      // held by the one who makes a checkpoint
	asked    int64           // how much of the file of set-aside URLs has been written down
	marks    []store.Mark    // of all record files as the run found them, those of stores that are not open now among them
	roots    []frontier.Item // seeds, and where they redirect to; appended to with mu held

	mu        sync.Mutex         // guards all below
	shelf     map[string]waiting // what was given up with its origin, by URL: for the journal it waits
	settled   map[string]bool    // URLs whose end is journalled, and whose visit is not given back yet
	told      map[string]bool    // URLs of which an earlier run has said that their host could not be had
	shared    map[string]string
	offs      map[string]int64
	sums      stats.Sums          // as the journal has them
	listed    map[string]int32    // how deep the visits were for which the sitemaps of origins were taken in
	wanted    map[string]bool     // origins whose robots.txt is on its way
	standings map[string]standing // of origins that failed lately
	lost      map[string]lost     // origins that were given up
}

// New makes an engine that goes on from a state.
func New(cfg Config, p Parts, s *State) *Engine {
	cfg = cfg.withDefaults()
	e := &Engine{
		cfg: cfg, frontier: s.views.Frontier, seen: s.views.Seen, digests: s.views.Digests, asides: p.Asides, rules: p.Robots, scope: p.Scope, block: p.Block, fetcher: p.Fetcher,
		newParser: p.NewParser, text: p.Text, stats: s.Stats, listener: p.Listener,
		quota: newQuota(cfg, s.Stats.Pages()), limiter: newLimiter(cfg.Rate), trusted: map[string]bool{},
		shelf: map[string]waiting{}, settled: map[string]bool{}, told: s.toldOf, shared: map[string]string{}, offs: map[string]int64{}, wanted: map[string]bool{}, listed: map[string]int32{},
		standings: map[string]standing{}, lost: map[string]lost{},
	}
	e.db, _ = e.seen.(*seen.DB)
	e.asked, e.roots, e.marks = s.askedTo, s.roots, s.Marks
	e.undecided.Store(s.undecided)
	if e.space.free = p.Free; p.Free != nil {
		e.space.least = cfg.MinFree
	}
	e.bytes.Store(s.Stats.Totals().Bytes)
	e.committer = newCommitter(p, cfg.Commit, e.journalCounts)
	e.restore(s)
	return e
}

func newLimiter(perSecond float64) *rate.Limiter {
	if perSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 1)
	}
	return rate.NewLimiter(rate.Limit(perSecond), max(1, int(math.Ceil(perSecond/10))))
}

// restore puts what waits back into the frontier. Hosts owe their full delay again: nobody knows when their last request was.
func (e *Engine) restore(s *State) {
	for _, it := range s.roots {
		if u, err := weburl.Parse(it.URL); err == nil {
			e.admit(u, it.Kind == page.Seed)
		}
	}
	for _, w := range s.queue() {
		host := e.intern(w.host)
		w.item.Path = e.intern(w.item.Path)
		e.frontier.Restore(host, w.item)
	}
	s.waiting = nil
}

// admit takes a root into scope. A seed, which the user named, is trusted and may be at a private address.
func (e *Engine) admit(u weburl.URL, seed bool) {
	e.scope.AddSeed(u)
	if !seed {
		return
	}
	e.trusted[u.Origin()] = true
	if secure, err := weburl.Parse("https://" + u.Host()); err == nil {
		e.trusted[secure.Origin()] = true // where the seed's host leads to TLS; never the other way round
	}
	if namesAddress(u.Hostname()) {
		e.fetcher.Allow(u.Host())
	}
}

// Run crawls from the seeds and from what waits until nothing waits, a limit is reached (an error that is ErrLimit) or the
// context ends (its error). Requests under way may then go on for Config.Grace. All that was fetched is durable when it returns,
// unless the error is another than those.
func (e *Engine) Run(ctx context.Context, seeds []weburl.URL, workers int) error {
	handing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	e.stop = stop
	if e.cfg.Time > 0 {
		t := time.AfterFunc(e.cfg.Time, func() { stop(limitErr("%v", e.cfg.Time)) })
		defer t.Stop()
	}
	fetching, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	defer context.AfterFunc(handing, func() { time.AfterFunc(e.cfg.Grace, abort) })()

	if err := e.seed(seeds); err != nil {
		return err
	}
	e.stopAtLimits()
	if e.space.least > 0 {
		if err := e.space.look(e.listener); err != nil {
			return err
		}
	}
	if err := e.crawl(handing, fetching, workers); err != nil {
		return err
	}
	return e.end(handing)
}

// end makes the last commit. It returns why the run stopped, nil when nothing waits.
func (e *Engine) end(handing context.Context) error {
	stopped := context.Cause(handing)
	if errors.Is(stopped, ErrLimit) && e.frontier.Counts().URLs == 0 && e.undecided.Load() == 0 {
		stopped = nil // the limit was just enough
	}
	if stopped == nil {
		if err := e.writeAsides(); err != nil {
			return err
		}
	}
	if err := e.checkpoint(context.Background()); err != nil { // so that the next run begins soon
		return err
	}
	if err := e.committer.close(); err != nil {
		return err
	}
	return stopped
}

// crawl runs the workers and the committer until the frontier is dry, handing ends, or one of them fails.
func (e *Engine) crawl(handing, fetching context.Context, workers int) error {
	committing, done := context.WithCancel(context.WithoutCancel(handing))
	defer done()
	all, _ := errgroup.WithContext(fetching)
	all.Go(func() error {
		err := e.keepUp(committing)
		if err != nil {
			e.stop(err)
		}
		return err
	})
	all.Go(func() error {
		err := e.watchSpace(committing)
		if err != nil {
			e.stop(err)
		}
		return err
	})
	all.Go(func() error {
		err := e.committer.run(committing)
		if err != nil {
			e.stop(err)
		}
		return err
	})
	err := e.employ(handing, fetching, workers)
	for err == nil && handing.Err() == nil && (e.undecided.Load() > 0 || e.frontier.Counts().URLs > 0) {
		// The frontier was dry, but for what a merge decides.
		if err = e.checkpoint(fetching); canceled(err) {
			err = nil
			break
		}
		if err == nil {
			err = e.employ(handing, fetching, workers)
		}
	}
	done()
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
	case e.cfg.Pages > 0 && e.stats.Pages() >= e.cfg.Pages:
		e.stop(e.pagesReached())
	case e.cfg.Bytes > 0 && e.bytes.Load() >= e.cfg.Bytes:
		e.stop(e.bytesReached())
	}
}

func (e *Engine) work(handing, fetching context.Context) error {
	w := &worker{Engine: e, parser: e.newParser()}
	for {
		e.space.await(handing)
		v, err := e.frontier.Next(handing)
		switch {
		case errors.Is(err, frontier.ErrDry), handing.Err() != nil && v == nil:
			return nil
		case err != nil:
			return err
		}
		if err := w.visit(fetching, v); err != nil {
			err = fmt.Errorf("crawl %s: %w", v.URL, err)
			e.stop(err)
			return err
		}
	}
}

// seed takes the seeds in, as the crawl's rules have them. Where a redirect leads back to how the user wrote them, that is in scope.
func (e *Engine) seed(seeds []weburl.URL) error {
	known := make([]weburl.URL, len(seeds))
	for i, u := range seeds {
		known[i] = e.cfg.Canon.Apply(u)
		e.admit(u, true)
		e.scope.AddSeed(known[i]) // without the trust: it may be another host than the user named
	}
	for part := range slices.Chunk(known, maxKept) {
		var b batch
		e.addSeeds(&b, part)
		if err := e.take(&b, nil, nil); err != nil {
			return err
		}
		if e.cfg.IgnoreRobots && e.cfg.Sitemaps == SitemapsGuessed {
			if err := e.guessSitemaps(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// take makes a batch part of the crawl: what is news of it is found out, then it goes with the record that brought it, if there is
// one, to the stores and the journal, and to the frontier.
func (e *Engine) take(b *batch, rec *page.Record, d *done) error {
	err := e.committer.within(func() error { return e.put(b, rec, d) })
	if err != nil {
		return err
	}
	e.tellSkips(b)
	return e.forsakeLost(b.found)
}

func (e *Engine) tellSkips(b *batch) {
	for i := range b.skips {
		e.listener.skipped(&b.skips[i])
	}
}

// settle notes that a URL's end is journalled. Until the visit is given back a checkpoint has it among those under way.
func (e *Engine) settle(url string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.settled[url] = true
}

func (e *Engine) unsettle(url string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.settled, url)
}

func (e *Engine) put(b *batch, rec *page.Record, d *done) error {
	e.offer(b)
	err := e.committer.put(rec, b.skips, func() []byte {
		e.countLinks(b)
		if d != nil {
			e.refer(rec, d)
			if e.db != nil {
				e.db.Note(d.url, d.meta)
			}
			b.entries.done(d)
		}
		return b.entries.b
	})
	if err != nil {
		return err
	}
	if b.settles != "" {
		e.settle(b.settles)
	}
	if d != nil {
		e.stats.Visited(d.visit)
	}
	for i := range b.skips {
		if b.skips[i].Rule != ruleFailed { // failures are counted as such
			e.stats.Skipped(b.skips[i].Rule)
		}
	}
	for i := range b.found {
		if b.found[i].item.Root {
			e.addRoot(b.found[i].item)
		}
		e.frontier.Push(b.found[i].host, b.found[i].item)
	}
	return e.asides.add(b.asides)
}

func (e *Engine) addRoot(it frontier.Item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.roots = append(e.roots, it)
}

// forsakeLost takes back what was found at origins that were given up.
func (e *Engine) forsakeLost(found []candidate) error {
	if !e.anyLost.Load() {
		return nil
	}
	for i := range found {
		origin := originOf(found[i].item.URL)
		if l, ok := e.isLost(origin); ok {
			if err := e.giveUp(origin, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// ruleFailed is the rule in skipped.jsonl of what was not answered.
const ruleFailed = "failed"

// refer lets later records with the same payload refer to this one.
func (e *Engine) refer(rec *page.Record, d *done) {
	if rec.Place.ID == "" || rec.Revisit != nil || rec.Response == nil || len(rec.Response.Payload) == 0 {
		return
	}
	d.ref = page.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Place.ID}
	e.digests.Put(rec.Digest, seen.Ref(d.ref))
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
