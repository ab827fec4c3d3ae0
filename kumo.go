package kumo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/job"
	"kumo/internal/app/session"
	"kumo/internal/app/wire"
	"kumo/internal/base/page"
	"kumo/internal/engine/crawl"
)

// A Crawler crawls. Make it with New, give it callbacks, and Run it once, or range over its Pages.
//
// Callbacks are called by the goroutines that fetch, as many at once as hosts are worked on; those of one host come one
// after another. While a callback runs its host waits, and no other does. They may call Stop and Stats, and are set
// before Run. A panic in one ends the program, as any does that nothing recovers.
type Crawler struct {
	job    job.Job
	set    map[string]bool // settings of a crawl's folder that options have given
	faults []error         // of options

	onPage    []func(*Page)
	onError   []func(*Error)
	onRequest []func(*Request)
	onLink    []func(*Link)
	findLinks []func(*Page) []string

	found  func(*Page, error) // where Pages waits for them; nil without
	vetoes atomic.Int64

	mu      sync.Mutex // guards below
	stop    context.CancelFunc
	over    bool
	running *session.Session // while it runs
	began   time.Time
	last    Stats // when it had run
	cause   error // why the first URL was not answered
}

// New returns a crawler with the manners of kumo crawl: it stays on the seeds' hosts, obeys robots.txt, and waits a
// second between two requests to a host.
func New(opts ...Option) *Crawler {
	c := &Crawler{set: map[string]bool{}}
	c.job.Crawl.Depth, c.job.Order, c.job.Frontier.Slices = -1, job.ByDepth, 1
	c.job.Crawl.PagesPerDomain = crawl.DefaultPagesPerDomain
	c.job.Crawl.HostsPerDomain, c.job.Crawl.NamesPerDomain = crawl.DefaultHostsPerDomain, crawl.DefaultNamesPerDomain
	c.job.Frontier.Delay, c.job.Frontier.AddrDelay = time.Second, 250*time.Millisecond
	c.job.Crawl.DecodeAll = true
	for _, opt := range opts {
		if opt == nil {
			c.faults = append(c.faults, errors.New("kumo.New: an Option is nil"))
			continue
		}
		opt(c)
	}
	return c
}

// OnPage has f called with every page, when it is fetched, kept and its links are queued. The Page and all that it
// holds are f's to keep; several callbacks get the same one. If f panics the program ends, see Run.
func (c *Crawler) OnPage(f func(*Page)) {
	c.require(f != nil, "OnPage", noFunction, "nil")
	c.onPage = append(c.onPage, f)
}

// OnError has f called with every URL that failed for good. The Error is f's to keep.
func (c *Crawler) OnError(f func(*Error)) {
	c.require(f != nil, "OnError", noFunction, "nil")
	c.onError = append(c.onError, f)
}

// OnRequest has f called before every request for a URL of the crawl, retries among them, but not for robots.txt and
// logins. The Request is f's until it returns.
func (c *Crawler) OnRequest(f func(*Request)) {
	c.require(f != nil, "OnRequest", noFunction, "nil")
	c.onRequest = append(c.onRequest, f)
}

// OnLink has f called with every link of every page, before scope, filters and robots.txt are asked about it. The Link
// is f's until it returns, its strings for good.
func (c *Crawler) OnLink(f func(*Link)) {
	c.require(f != nil, "OnLink", noFunction, "nil")
	c.onLink = append(c.onLink, f)
}

// FindLinks has f called with every page before its links are queued. The URLs that it returns, which may be relative,
// count as further links of the page: for pages whose links only the program knows to read, as JSON has them.
func (c *Crawler) FindLinks(f func(*Page) []string) {
	c.require(f != nil, "FindLinks", noFunction, "nil")
	c.findLinks = append(c.findLinks, f)
}

// Run crawls from seeds until nothing waits. It returns nil then, ErrLimit when a limit was reached, ErrNothing when no
// URL was answered, and the context's error when that ended or Stop was called. Requests under way may take up to five
// seconds more. All callbacks have returned when Run does. One that panics ends the program: it runs in a goroutine of
// the crawl's, where the caller of Run cannot recover it.
func (c *Crawler) Run(ctx context.Context, seeds ...string) error {
	ctx, err := c.begin(ctx)
	if err != nil {
		return err
	}
	return c.run(ctx, seeds)
}

// Pages is Run as an iterator: it yields each page as OnPage has it, with a nil error, and each URL that failed for
// good as a nil page with an *Error. Any other error is the last, and what Run returns. The crawl waits while the
// loop's body works, but for requests under way. Leaving the loop stops the crawl and waits for its end; pages that
// come meanwhile are dropped.
func (c *Crawler) Pages(ctx context.Context, seeds ...string) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		ctx, err := c.begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		type result struct {
			page *Page
			err  error
		}
		results, left, ended := make(chan result), make(chan struct{}), make(chan struct{})
		c.found = func(p *Page, err error) {
			select {
			case results <- result{p, err}:
			case <-left:
			}
		}
		go func() {
			defer close(ended)
			err = c.run(ctx, seeds)
		}()
		defer func() {
			close(left)
			c.Stop()
			<-ended
		}()
		for {
			select {
			case r := <-results:
				if !yield(r.page, r.err) {
					return
				}
			case <-ended:
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
	}
}

func (c *Crawler) begin(ctx context.Context) (context.Context, error) {
	switch {
	case c.set == nil:
		return nil, errors.New("kumo: a Crawler is made with New")
	case ctx == nil:
		return nil, errors.New("kumo: the context is nil")
	}
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil, errors.New("kumo: a Crawler runs once")
	}
	ctx, c.stop = context.WithCancel(ctx)
	if c.over {
		c.stop()
	}
	c.began = time.Now()
	return ctx, nil
}

func (c *Crawler) run(ctx context.Context, seeds []string) error {
	defer c.Stop()
	c.job.Seeds = seeds
	c.job.Listener = crawl.Listener{Visited: c.visited, Skipped: c.skipped}
	c.job.Hooks = c.hooks()
	if err := c.resume(); err != nil {
		return err
	}
	s, err := wire.Open(ctx, &c.job)
	if err != nil {
		return toOptionError(err)
	}
	c.setRunning(s)
	_, err = s.Run(ctx)
	c.keepLastStats()
	if err == nil && s.Stats.Pages() == 0 {
		err = c.nothing()
	}
	return toOptionError(errors.Join(err, s.Close()))
}

// Stop ends Run, now or when it is called.
func (c *Crawler) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	if c.stop != nil {
		c.stop()
	}
}

func (c *Crawler) visited(r *page.Record) {
	if r.Failure != page.None {
		c.failed(errorOf(r))
		return
	}
	if len(c.onPage) == 0 && c.found == nil {
		return
	}
	p := pageOf(r)
	for _, f := range c.onPage {
		f(p)
	}
	if c.found != nil {
		c.found(p, nil)
	}
}

func (c *Crawler) failed(e *Error) {
	c.setCause(func() error { return e })
	for _, f := range c.onError {
		f(e)
	}
	if c.found != nil {
		c.found(nil, e)
	}
}

func (c *Crawler) skipped(s *page.Skip) {
	if s.Rule == "failed" {
		return // visited is told more
	}
	c.setCause(func() error { return toOptionError(fmt.Errorf("%s was left out: %s: %s", s.URL, s.Rule, s.Why)) })
}

// setCause keeps why the first URL was not answered.
func (c *Crawler) setCause(why func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		c.cause = why()
	}
}

func (c *Crawler) nothing() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause == nil {
		return ErrNothing
	}
	return fmt.Errorf("%w: %w", ErrNothing, c.cause)
}
