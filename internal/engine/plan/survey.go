package plan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// Config is what of a crawl's settings decides what is asked for, and what counts.
type Config struct {
	Rules        policy.Rules // seeds are added to its scope
	Canon        weburl.Rules
	IgnoreRobots bool
	Sitemaps     policy.Sitemaps
	MaxSitemap   int64         // bytes of a sitemap's body, as transferred
	PagesPerHost int64         // 0: without limit
	OnlySeeds    bool          // the scope has nothing but seeds
	Delay        time.Duration // the crawl's own
	MaxDelay     time.Duration // how much of a Crawl-delay is obeyed; negative: nothing

	Workers     int
	Rate        float64 // requests a second, all hosts together; 0: without limit
	Tries       int     // attempts at one robots.txt or sitemap
	MaxSitemaps int     // sitemaps that are read of those that one host names; 100
	Now         func() time.Time
}

// Parts are what a survey works with. They are its own.
type Parts struct {
	Fetcher   visit.Fetcher
	Frontier  *frontier.Frontier // empty; its delays are the crawl's
	Robots    *robots.Cache      // empty
	NewParser func() Parser
	Readers   int // sitemaps that are read at once
}

// A Parser reads a sitemap into a page.
type Parser interface {
	ParseList(resp *page.Response, pg *page.Page) error
}

// MaxHosts and MaxSeeds bound what one survey takes in.
const (
	MaxHosts = 100_000
	MaxSeeds = 1_000_000
)

const (
	maxUnpacked        = 64 << 20 // bytes of a sitemap without content coding
	maxPatience        = 30 * time.Second
	defaultMaxSitemaps = 100
	maxListed          = 10_000_000 // URLs that are told apart, of 13 bytes each
	maxElsewhere       = 16         // hosts out of scope that are counted apart
)

// ErrTooMany is a survey of more than MaxHosts hosts or MaxSeeds seeds.
var ErrTooMany = fmt.Errorf("a plan is for %d seeds on %d hosts at most", MaxSeeds, MaxHosts)

// A Survey asks the hosts of a crawl's seeds for their robots.txt, and for the sitemaps that these name. It is used for
// one Run, after seeds were added.
type Survey struct {
	cfg     Config
	parts   Parts
	gate    *visit.Gate
	rate    *rate.Limiter
	parsers sync.Pool
	reading chan struct{}
	listed  *weburl.Set

	mu       sync.Mutex // guards below
	hosts    map[string]*hostState
	order    []string // in which hosts were met
	seeds    int
	requests int64
	asked    map[string]bool // URLs of sitemaps that were queued
	guessed  map[string]bool // of these, those that nobody names
}

// A hostState is what is known of a host while it is asked.
type hostState struct {
	Host
	seeds     []weburl.URL
	origins   map[string]*originState
	answers   int64
	answering time.Duration
	elsewhere map[string]int64
	queued    int // sitemaps
	// nobody names a sitemap, and there is none where one may be guessed
	noneGuessed bool
}

// An originState is what became of an origin's robots.txt.
type originState struct {
	done    bool
	status  int
	failure page.Failure
	detail  string
}

// New makes a survey.
func New(cfg Config, p Parts) *Survey {
	cfg.Tries = max(cfg.Tries, 1)
	if cfg.MaxSitemaps == 0 {
		cfg.MaxSitemaps = defaultMaxSitemaps
	}
	s := &Survey{cfg: cfg, parts: p, rate: visit.NewLimiter(cfg.Rate),
		reading: make(chan struct{}, max(p.Readers, 1)), listed: weburl.NewSet(), hosts: map[string]*hostState{},
		asked: map[string]bool{}, guessed: map[string]bool{}}
	s.gate = visit.NewGate(
		&visit.Gate{Rules: p.Robots, Frontier: p.Frontier, Block: cfg.Rules.Block, Unavailable: s.robotsDone},
	)
	s.parsers.New = func() any { return &reading{parser: p.NewParser()} }
	return s
}

// reading is what reads one sitemap.
type reading struct {
	parser Parser
	page   page.Page
}

// Add takes a seed in, as the crawl would: its host is in scope, and may be at a private address. The
// error is ErrTooMany.
func (s *Survey) Add(u weburl.URL) error {
	known := s.cfg.Canon.Apply(u)
	s.cfg.Rules.Scope.AddSeed(u)
	s.cfg.Rules.Scope.AddSeed(known)
	s.parts.Fetcher.Allow(u.Host())
	if s.seeds++; s.seeds > MaxSeeds {
		return ErrTooMany
	}
	h := s.host(known.Host())
	if h == nil {
		return ErrTooMany
	}
	h.seeds = append(h.seeds, known)
	h.origin(known.Origin())
	return nil
}

// host is the state of a host, nil if there are too many. mu is held, or nobody else is there.
func (s *Survey) host(key string) *hostState {
	h := s.hosts[key]
	if h == nil && len(s.hosts) < MaxHosts {
		key = strings.Clone(key)
		h = &hostState{Host: Host{Host: key}, origins: map[string]*originState{}}
		s.hosts[key] = h
		s.order = append(s.order, key)
	}
	return h
}

func (h *hostState) origin(origin string) *originState {
	o := h.origins[origin]
	if o == nil {
		o = &originState{}
		h.origins[strings.Clone(origin)] = o
	}
	return o
}

// Run asks, and says what is known then. When ctx ends it returns its error with a plan of what was known by then.
func (s *Survey) Run(ctx context.Context) (*Plan, error) {
	began := s.cfg.Now()
	err := s.askRobots(ctx)
	if err == nil {
		err = s.askSitemaps(ctx)
	}
	p := s.plan()
	p.Took = s.cfg.Now().Sub(began)
	return p, err
}

// askRobots asks for the robots.txt of all origins of seeds. What sitemaps list is judged by all of them, so no sitemap
// is read before.
func (s *Survey) askRobots(ctx context.Context) error {
	if s.cfg.IgnoreRobots {
		return nil
	}
	for _, key := range s.order {
		h := s.hosts[key]
		for origin := range h.origins {
			s.parts.Frontier.Push(key, item.Item{URL: origin + visit.RobotsPath, Robots: origin})
		}
	}
	return s.work(ctx)
}

// askSitemaps asks for the sitemaps of hosts where the crawl would: those whose seeds are not all forbidden.
func (s *Survey) askSitemaps(ctx context.Context) error {
	if s.cfg.Sitemaps == policy.SitemapsIgnored || s.cfg.Rules.MaxDepth == 0 && s.cfg.Rules.Overrides == nil {
		return nil
	}
	s.mu.Lock()
	for _, key := range s.order {
		h := s.hosts[key]
		for origin := range h.origins {
			if h.hasAllowed(s, origin) {
				s.queueNamed(h, origin)
			}
		}
	}
	s.mu.Unlock()
	return s.work(ctx)
}

// hasAllowed reports whether the crawl may fetch a seed of an origin.
func (h *hostState) hasAllowed(s *Survey, origin string) bool {
	return slices.ContainsFunc(h.seeds, func(u weburl.URL) bool {
		ok, _ := s.mayFetch(u)
		return ok && u.Origin() == origin
	})
}

// queueNamed queues the sitemaps that an origin's robots.txt names, or the one that may be guessed. mu is held.
func (s *Survey) queueNamed(h *hostState, origin string) {
	rules, _ := s.parts.Robots.Get(origin)
	base, all := visit.Sitemaps(origin, rules, s.cfg.Sitemaps)
	if len(all) > 0 && (rules == nil || len(rules.Sitemaps()) == 0) {
		s.guessed[origin+visit.GuessedSitemap] = true
	}
	from := item.Item{URL: base.String(), Seed: h.seeds[0].String(), Path: "P"}
	for _, to := range all {
		s.queue(h, &from, to, 0)
	}
}

// queue queues a sitemap that another list, or a robots.txt, names. mu is held.
func (s *Survey) queue(h *hostState, from *item.Item, to weburl.URL, redirects uint8) {
	to = s.cfg.Canon.Apply(to.Canonical())
	link := policy.Link{From: from.URL, Kind: page.Sitemap, Depth: 1, Redirects: redirects}
	if s.asked[to.String()] || s.cfg.Rules.Judge(to, link).Refused() || strings.Count(from.Path, "M") >= visit.MaxNested {
		return
	}
	if h.queued >= s.cfg.MaxSitemaps {
		h.Sitemaps.Left++
		return
	}
	h.queued++
	s.asked[to.String()] = true
	s.parts.Frontier.Push(to.Host(), item.Item{URL: to.String(), From: from.URL, Seed: from.Seed, Kind: page.Sitemap,
		Path: from.Path + "M", Depth: 1, Redirects: redirects})
}

// work visits until nothing waits.
func (s *Survey) work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range max(s.cfg.Workers, 1) {
		g.Go(func() error {
			resp := new(page.Response)
			for {
				v, err := s.parts.Frontier.Next(ctx)
				switch {
				case errors.Is(err, frontier.ErrDrained):
					return nil
				case err != nil:
					return err
				}
				if err := s.visit(ctx, v, resp); err != nil {
					return err
				}
				resp.Buffers.Empty()
			}
		})
	}
	return g.Wait()
}

func (s *Survey) visit(ctx context.Context, v *frontier.Visit, resp *page.Response) error {
	u, err := weburl.Parse(v.URL)
	if err != nil {
		s.parts.Frontier.Done(v, frontier.Result{})
		return nil //nolint:nilerr // cannot be: the frontier takes none
	}
	if why := s.cfg.Rules.Block.Match(u); why != "" {
		s.endSitemap(v, frontier.Result{}, page.None, "block list: "+why)
		return nil
	}
	if v.Robots == "" && !s.cfg.IgnoreRobots {
		if _, known := s.parts.Robots.Get(u.Origin()); !known && !s.robotsDone(u.Origin()) {
			s.gate.Await(v, u.Origin(), item.Item{Seed: v.Seed}) // of another host than the one that names the sitemap
			return nil
		}
		if ok, line := s.mayFetch(u); !ok {
			s.endSitemap(v, frontier.Result{}, page.None, line.Text)
			return nil
		}
	}
	addr, err := s.parts.Fetcher.Resolve(ctx, u.Hostname(), u.Port())
	if err == nil && !s.parts.Frontier.Reserve(v, addr) {
		return nil // the address's turn is later
	}
	if s.rate.Wait(ctx) != nil {
		s.parts.Frontier.Done(v, frontier.Result{})
		return ctx.Err()
	}
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: s.trusts(u), MaxBody: visit.MaxRobots, NoCookies: v.Robots != ""}
	if v.Kind == page.Sitemap {
		req.MaxBody = s.cfg.MaxSitemap
	}
	err = s.parts.Fetcher.Get(ctx, req, resp)
	if ctx.Err() != nil {
		s.parts.Frontier.Done(v, frontier.Result{})
		return ctx.Err()
	}
	return s.handleExchange(v, u, addr, resp, err)
}

// handleExchange decides what follows from an exchange.
func (s *Survey) handleExchange(
	v *frontier.Visit,
	u weburl.URL,
	addr netip.Addr,
	resp *page.Response,
	err error,
) error {
	judge := visit.Judge
	if v.Robots != "" {
		judge = visit.JudgeRobots
	}
	j := judge(resp, err, int(v.Tries), s.cfg.Tries, s.cfg.Now())
	r := frontier.Result{Outcome: j.Outcome, RetryAfter: j.RetryAfter}
	s.count(u, addr, resp, err)
	hasty := j.Failure == page.DNS || j.Failure == page.Refused || j.RetryAfter > maxPatience
	switch {
	case j.Again && !hasty && int(v.Tries) < s.cfg.Tries:
		r.Requeue = []item.Item{v.Item}
	case v.Robots != "":
		if err == nil {
			if err := fetch.Decode(resp, visit.MaxRobots); errors.Is(err, fetch.ErrDisk) {
				return err
			}
		}
		s.handleRobots(v, u, resp, &j)
	case err != nil:
		s.endSitemap(v, r, j.Failure, j.Detail)
		return nil
	default:
		why, err := s.readSitemap(v, u, resp)
		if err != nil {
			return err
		}
		s.endSitemap(v, r, page.None, why)
		return nil
	}
	s.parts.Frontier.Done(v, r)
	return nil
}

// count notes what an exchange says of a host, beside its body.
func (s *Survey) count(u weburl.URL, addr netip.Addr, resp *page.Response, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	h := s.hosts[u.Host()]
	if h == nil {
		return
	}
	if h.addr = addr; err == nil {
		h.answers++
		h.answering += resp.Total
	}
}

// endSitemap gives a sitemap's visit back; why is what was wrong with it.
func (s *Survey) endSitemap(v *frontier.Visit, r frontier.Result, failure page.Failure, why string) {
	s.mu.Lock()
	if h := s.ownerOf(&v.Item); h != nil && v.Robots == "" {
		if why == "" && failure == page.None {
			h.Sitemaps.Read++
		} else if s.guessed[v.URL] && failure == page.None {
			h.noneGuessed = true
		} else if h.Sitemaps.Failed++; h.Note == "" {
			h.Note = fmt.Sprintf("its sitemap %s could not be read: %s", v.URL, why)
		}
	}
	s.mu.Unlock()
	s.parts.Frontier.Done(v, r)
}

// ownerOf is the host whose sitemap an item is, wherever that lies. mu is held.
func (s *Survey) ownerOf(it *item.Item) *hostState { return s.hosts[item.HostOf(it.Seed)] }

// robotsDone reports whether the question for an origin's robots.txt is over.
func (s *Survey) robotsDone(origin string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[item.HostOf(origin)]
	return h != nil && h.origins[origin] != nil && h.origins[origin].done
}

// handleRobots makes rules of the answer, or follows a redirect.
func (s *Survey) handleRobots(v *frontier.Visit, u weburl.URL, resp *page.Response, j *visit.Verdict) {
	status := resp.Status
	if j.Failure != page.None {
		status = 0
	}
	next, to := s.gate.HandleAnswer(v, u, status, resp)
	if !to.IsZero() {
		s.parts.Frontier.Push(to.Host(), next)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.hosts[item.HostOf(v.Robots)]; h != nil {
		o := h.origin(v.Robots)
		o.done, o.status, o.failure, o.detail = true, status, j.Failure, j.Detail
		if rules, known := s.parts.Robots.Get(v.Robots); known {
			delay, _ := rules.Delay()
			h.CrawlDelay = max(h.CrawlDelay, delay.Seconds())
		}
	}
}

// mayFetch says whether robots.txt lets a URL be fetched, and by which line. Of an origin that nobody has asked the
// rules are taken to be those of its host's other scheme.
func (s *Survey) mayFetch(u weburl.URL) (bool, robots.Line) {
	if s.cfg.IgnoreRobots {
		return true, robots.Line{}
	}
	rules := s.rulesOf(u)
	if rules == nil {
		return true, robots.Line{}
	}
	return rules.Decide(u.RequestURI())
}

func (s *Survey) rulesOf(u weburl.URL) *robots.Rules {
	if rules, known := s.parts.Robots.Get(u.Origin()); known {
		return rules
	}
	for _, scheme := range []string{"https://", "http://"} {
		if rules, known := s.parts.Robots.Get(scheme + u.Host()); known {
			return rules
		}
	}
	return nil
}

// trusts reports whether secrets may be sent with a request: to hosts of seeds, and to none of them without TLS whose
// seeds have it.
func (s *Survey) trusts(u weburl.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[u.Host()]
	return h != nil && slices.ContainsFunc(h.seeds, func(seed weburl.URL) bool {
		return u.Scheme() == "https" || seed.Origin() == u.Origin()
	})
}
