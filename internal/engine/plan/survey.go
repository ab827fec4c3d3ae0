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

// Config is the part of a crawl's settings that a survey needs.
type Config struct {
	Rules        policy.Rules // seeds are added to its scope
	Canon        weburl.Rules
	IgnoreRobots bool
	Sitemaps     policy.Sitemaps
	MaxSitemap   int64         // maximum size of a sitemap as transferred, in bytes
	PagesPerHost int64         // 0: unlimited
	OnlySeeds    bool          // only seeds are in scope
	Delay        time.Duration // the crawl's delay per host
	MaxDelay     time.Duration // maximum Crawl-delay that is obeyed; negative: none is

	Workers     int
	Rate        float64 // requests per second to all hosts together; 0: unlimited
	Tries       int     // requests per robots.txt or sitemap
	MaxSitemaps int     // sitemaps read per host; default 100
	Now         func() time.Time
}

// Parts are a survey's dependencies. A survey does not share them.
type Parts struct {
	Fetcher   visit.Fetcher
	Frontier  *frontier.Frontier // empty, with the crawl's delays
	Robots    *robots.Cache      // empty
	NewParser func() Parser
	Readers   int // sitemaps parsed at once
}

// A Parser parses a sitemap into a page.
type Parser interface {
	ParseList(resp *page.Response, pg *page.Page) error
}

// MaxHosts and MaxSeeds bound a survey.
const (
	MaxHosts = 100_000
	MaxSeeds = 1_000_000
)

const (
	maxUnpacked        = 64 << 20 // bytes of a decoded sitemap
	maxPatience        = 30 * time.Second
	defaultMaxSitemaps = 100
	maxListed          = 10_000_000 // URLs in the set that detects duplicates, at 13 bytes each
	maxElsewhere       = 16         // hosts out of scope that are counted
)

// ErrTooMany means that a survey has more than MaxHosts hosts or MaxSeeds seeds.
var ErrTooMany = fmt.Errorf("too many seeds for a plan: the limit is %d seeds on %d hosts", MaxSeeds, MaxHosts)

// A Survey fetches the robots.txt files of the hosts of a crawl's seeds, and the sitemaps that these name. It is used
// for one Run, after seeds were added.
type Survey struct {
	cfg     Config
	parts   Parts
	gate    *visit.Gate
	rate    *rate.Limiter
	parsers sync.Pool
	reading chan struct{}
	listed  *weburl.Set

	mu       sync.Mutex // guards the fields below
	hosts    map[string]*hostState
	order    []string // of hosts, by first occurrence
	seeds    int
	requests int64
	asked    map[string]bool // URLs of queued sitemaps
	guessed  map[string]bool // of these, guessed ones that no robots.txt names
}

// A hostState is the state of a host during the survey.
type hostState struct {
	Host
	seeds     []weburl.URL
	origins   map[string]*originState
	answers   int64
	answering time.Duration
	elsewhere map[string]int64
	queued    int // sitemaps
	// no sitemap is named, and the guessed one does not exist
	noneGuessed bool
}

// An originState is the result of fetching an origin's robots.txt.
type originState struct {
	done    bool
	status  int
	failure page.Failure
	detail  string
}

// New returns a survey without seeds.
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

// reading has the parser and the page for one sitemap.
type reading struct {
	parser Parser
	page   page.Page
}

// Add adds a seed, as the crawl would: its host is in scope, and may have a private address. The error is ErrTooMany.
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

// host returns the state of a host, nil if there are too many. The caller holds mu, or no other goroutine runs.
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

// Run surveys the hosts and returns a plan. If ctx ends, it returns its error with a plan of the data so far.
func (s *Survey) Run(ctx context.Context) (*Plan, error) {
	began := s.cfg.Now()
	err := s.fetchRobots(ctx)
	if err == nil {
		err = s.fetchSitemaps(ctx)
	}
	p := s.plan()
	p.Took = s.cfg.Now().Sub(began)
	return p, err
}

// fetchRobots fetches the robots.txt of all origins of seeds. Entries of sitemaps are judged by all of these, so no
// sitemap is read before.
func (s *Survey) fetchRobots(ctx context.Context) error {
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

// fetchSitemaps fetches the sitemaps of hosts that have a seed which the crawl may fetch.
func (s *Survey) fetchSitemaps(ctx context.Context) error {
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

// queueNamed queues the sitemaps that an origin's robots.txt names, or the default sitemap if it may be guessed. The
// caller holds mu.
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

// queue queues a sitemap that a robots.txt or another list names. The caller holds mu.
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

// work makes visits until the queues are empty.
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
		return nil //nolint:nilerr // cannot happen: the frontier accepts only valid URLs
	}
	if why := s.cfg.Rules.Block.Match(u); why != "" {
		s.endSitemap(v, frontier.Result{}, page.None, "block list: "+why)
		return nil
	}
	if v.Robots == "" && !s.cfg.IgnoreRobots {
		if _, known := s.parts.Robots.Get(u.Origin()); !known && !s.robotsDone(u.Origin()) {
			// the sitemap is on another host than the robots.txt that names it
			s.gate.Await(v, u.Origin(), item.Item{Seed: v.Seed})
			return nil
		}
		if ok, line := s.mayFetch(u); !ok {
			s.endSitemap(v, frontier.Result{}, page.None, line.Text)
			return nil
		}
	}
	addr, err := s.parts.Fetcher.Resolve(ctx, u.Hostname(), u.Port())
	if err == nil && !s.parts.Frontier.Reserve(v, addr) {
		return nil // the frontier has queued it for the address's next turn
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

// count counts an exchange for its host, without its body.
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

// endSitemap ends the visit of a sitemap; why is the reason if it could not be read.
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

// ownerOf returns the host whose sitemap an item is, wherever the sitemap is stored. The caller holds mu.
func (s *Survey) ownerOf(it *item.Item) *hostState { return s.hosts[item.HostOf(it.Seed)] }

// robotsDone reports whether the robots.txt of an origin was fetched or has failed.
func (s *Survey) robotsDone(origin string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[item.HostOf(origin)]
	return h != nil && h.origins[origin] != nil && h.origins[origin].done
}

// handleRobots applies the rules of an answer, or follows a redirect.
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

// mayFetch returns whether robots.txt allows a URL, and the line that decides. If an origin's robots.txt was not
// fetched, the rules of the host's other scheme apply.
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

// trusts reports whether secrets may be sent with a request: only to hosts of seeds, and without TLS only to origins of
// seeds.
func (s *Survey) trusts(u weburl.URL) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[u.Host()]
	return h != nil && slices.ContainsFunc(h.seeds, func(seed weburl.URL) bool {
		return u.Scheme() == "https" || seed.Origin() == u.Origin()
	})
}
