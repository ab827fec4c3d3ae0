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
	"kumo/internal/content/policy"
	"kumo/internal/engine/crawl"
)

// A Crawler crawls the web. Create it with New, set callbacks, and call Run once, or iterate over Pages.
//
// The goroutines that fetch pages call the callbacks, concurrently for different hosts and one at a time for the same
// host. A running callback delays only its own host. Callbacks may call Stop and Stats. Set them before Run. A panic in
// a callback ends the program.
type Crawler struct {
	job    job.Job
	set    map[string]bool // settings given by options that a crawl's folder stores
	faults []error         // errors of options

	onPage    []func(*Page)
	onError   []func(*Error)
	onRequest []func(*Request)
	onLink    []func(*Link)
	findLinks []func(*Page) []string

	found  func(*Page, error) // callback of Pages; nil without
	vetoes atomic.Int64

	mu      sync.Mutex // guards the following fields
	stop    context.CancelFunc
	over    bool
	running *session.Session // the running session
	began   time.Time
	last    Stats // counters of the last session
	cause   error // why the first URL was not answered
}

// grace is how long requests in flight may take when a crawl is stopped. A program that cancels a crawl waits for it.
const grace = 1500 * time.Millisecond

// New returns a crawler with the defaults of kumo crawl: it stays on the seeds' hosts, obeys robots.txt, and waits one
// second between requests to a host.
func New(opts ...Option) *Crawler {
	c := &Crawler{set: map[string]bool{}}
	c.job.Crawl.Depth, c.job.Order, c.job.Frontier.Slices = -1, job.ByDepth, 1
	c.job.Crawl.PagesPerDomain = crawl.DefaultPagesPerDomain
	c.job.Crawl.HostsPerDomain, c.job.Crawl.NamesPerDomain = crawl.DefaultHostsPerDomain, crawl.DefaultNamesPerDomain
	c.job.Frontier.Delay, c.job.Frontier.AddrDelay = time.Second, 250*time.Millisecond
	c.job.Crawl.DecodeAll = true
	c.job.Crawl.Grace = grace
	for _, opt := range opts {
		if opt == nil {
			c.faults = append(c.faults, errors.New("kumo.New: an Option is nil"))
			continue
		}
		opt(c)
	}
	return c
}

// OnPage calls f with every page, after it is fetched and stored and its links are queued. f may keep the Page and its
// contents; if there are several callbacks, they share it. If f panics, the program ends, see Run.
func (c *Crawler) OnPage(f func(*Page)) {
	c.require(f != nil, "OnPage", noFunction, "nil")
	c.onPage = append(c.onPage, f)
}

// OnError calls f with every URL that failed permanently. f may keep the Error.
func (c *Crawler) OnError(f func(*Error)) {
	c.require(f != nil, "OnError", noFunction, "nil")
	c.onError = append(c.onError, f)
}

// OnRequest calls f before every request for a URL of the crawl, including retries, but not for robots.txt and logins.
// f must not keep the Request after it returns.
func (c *Crawler) OnRequest(f func(*Request)) {
	c.require(f != nil, "OnRequest", noFunction, "nil")
	c.onRequest = append(c.onRequest, f)
}

// OnLink calls f with every link of every page, before scope, filters and robots.txt are checked. f must not keep the
// Link after it returns, but may keep its strings.
func (c *Crawler) OnLink(f func(*Link)) {
	c.require(f != nil, "OnLink", noFunction, "nil")
	c.onLink = append(c.onLink, f)
}

// FindLinks calls f with every page before its links are queued. The URLs that f returns, which may be relative, are
// added to the page's links. Use it for links that only the program can find, such as those in JSON.
func (c *Crawler) FindLinks(f func(*Page) []string) {
	c.require(f != nil, "FindLinks", noFunction, "nil")
	c.findLinks = append(c.findLinks, f)
}

// Run crawls from the seeds until no URL is pending. Then it returns nil. It returns ErrLimit if a limit was reached,
// ErrNothing if no URL was answered, and the context's error if the context ended or Stop was called. Requests in
// flight may take up to two seconds more. All callbacks have returned when Run returns. A panic in a callback ends the
// program, because callbacks run in the crawl's goroutines, where the caller of Run cannot recover.
func (c *Crawler) Run(ctx context.Context, seeds ...string) error {
	ctx, err := c.begin(ctx)
	if err != nil {
		return err
	}
	return c.run(ctx, seeds)
}

// Pages runs the crawl as an iterator. It yields each page, as OnPage does, with a nil error, and each URL that failed
// permanently as a nil page with an *Error. Any other error comes last, and is the result of Run. While the loop's body
// runs, the crawl waits, except for requests in flight. Leaving the loop stops the crawl and waits for its end; pages
// that arrive after that are dropped.
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
		return nil, errors.New("kumo: create a Crawler with New")
	case ctx == nil:
		return nil, errors.New("kumo: the context is nil")
	}
	if err := errors.Join(c.faults...); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stop != nil {
		return nil, errors.New("kumo: Run or Pages was called twice")
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
	if err := c.checkRenderer(); err != nil {
		return err
	}
	s, err := wire.Open(ctx, &c.job)
	if err != nil {
		return toOptionError(err)
	}
	c.setRunning(s)
	_, err = s.Run(ctx)
	c.saveLastStats()
	if err == nil && s.Stats.Pages() == 0 {
		err = c.nothing()
	}
	return toOptionError(errors.Join(err, s.Close()))
}

// checkRenderer returns an error if pages are to be rendered, and there is no renderer.
func (c *Crawler) checkRenderer() error {
	mode := c.job.Crawl.Render
	if c.job.Renderer != nil || (mode == "" || mode == policy.RenderNever) && !c.job.Crawl.Overrides.Renders() {
		return nil
	}
	return errors.New("kumo: the crawl renders pages, as its folder or an override says: give it a renderer with " +
		"kumo.Render")
}

// Stop ends Run. If it is called before Run, Run ends immediately.
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
		return // visited gets the details
	}
	c.setCause(func() error { return toOptionError(fmt.Errorf("%s was excluded: %s: %s", s.URL, s.Rule, s.Why)) })
}

// setCause stores why the first URL was not answered.
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
