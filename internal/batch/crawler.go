package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// A crawler fetches the URLs of one reduce task. It has no lock of its own: the frontier holds the URLs by host and
// keeps the politeness delays, and its other parts guard their own state.
//
//	feed     the task's groups → add, as long as there is room
//	add      judged by the rules of each collection; refused → a Document with the reason; otherwise → frontier
//	visit    robots.txt known? allowed? → fetch → judge the answer: again, failed, or a Document for each collection
//	follow   a redirect on the same host, in round 0 → add; others → the next round, through parse and optimize
type crawler struct {
	*setup
	task        *Task
	client      *fetch.Client
	frontier    *frontier.Frontier
	gate        *visit.Gate
	rules       *originRules
	origins     *visit.Origins
	hosts       *hosts
	pending     *pending
	out         *output
	reader      *pageReader
	seen        *weburl.Set // URLs added so far, with their collections
	start       time.Time
	minInterval time.Duration // shortest interval of the collections

	idle  atomic.Int64 // nanoseconds that threads waited because no host's delay had passed
	pages atomic.Int64
}

const (
	maxTaskThreads = 1000
	maxCrawlDelay  = 30 * time.Second // limit of the delays that robots.txt files request
	statusInterval = 5 * time.Second
	rulesCacheSize = 128 << 20 // bytes of parsed rules in memory
)

// originLimits are the failures in a row after which an origin is abandoned for the round.
var originLimits = visit.Limits{Refusals: 8, Silences: 8, Throttles: 10}

// Names of rules that exclude a URL, in addition to those of package policy.
const ruleRobots = "robots"

func (s *setup) crawlReduce(ctx context.Context, t *Task, groups Groups, emit Emit) (err error) {
	client, err := fetch.New(s.Fetching.config())
	if err != nil {
		return err
	}
	defer client.Close()
	c := s.newCrawler(t, client, emit)
	defer func() { err = errors.Join(err, c.gate.Rules.Close()) }()
	if err := c.loadRules(ctx); err != nil {
		return err
	}
	return c.run(ctx, groups)
}

func (s *setup) newCrawler(t *Task, client *fetch.Client, emit Emit) *crawler {
	c := &crawler{setup: s, task: t, client: client, start: s.Now(), seen: weburl.NewSet(), pending: newPending(),
		rules:   &originRules{deferred: map[string]bool{}, failures: map[string]string{}},
		origins: visit.NewOrigins(originLimits, s.Now),
		out:     &output{task: t, now: s.Now, emit: emit}, reader: newPageReader(s)}
	var longest time.Duration
	for i, m := range s.Collections {
		interval := time.Duration(m.Interval)
		longest = max(longest, interval)
		if i == 0 || interval < c.minInterval {
			c.minInterval = interval
		}
		for _, seed := range m.Seeds {
			if u, err := weburl.Parse(seed); err == nil && weburl.IsAddress(u.Hostname()) {
				client.Allow(u.Host()) // a seed with a private address permits it
			}
		}
	}
	c.frontier = frontier.New(frontier.Config{Hosts: c.threads(), PerHost: 1, Session: 1, Delay: c.minInterval,
		MaxDelay: max(maxCrawlDelay, longest), AddrDelay: s.Fetching.AddressDelay, Now: s.Now,
		MaxWait: cmp.Or(s.Fetching.MaxWait, 5*time.Minute)})
	c.frontier.KeepOpen(true)
	cache := robots.NewCache(robots.Config{Agent: s.Fetching.Agent, ErrorTTL: 24 * time.Hour, MaxBytes: rulesCacheSize,
		Now: s.Now})
	c.hosts = &hosts{frontier: c.frontier, rules: cache, intervals: map[string]time.Duration{}}
	c.gate = visit.NewGate(&visit.Gate{Rules: cache, Frontier: c.frontier, Unavailable: c.rules.isDeferred,
		Delay: func(host string, asked time.Duration) time.Duration {
			return max(asked, c.minInterval, c.hosts.interval(host))
		}})
	return c
}

// threads returns the sum of the collections' threads, as they share the task.
func (c *crawler) threads() int {
	n := 0
	for _, m := range c.Collections {
		n += m.Threads
	}
	return min(max(n, 1), maxTaskThreads)
}

func (c *crawler) run(ctx context.Context, groups Groups) error {
	threads := c.threads()
	g, inner := errgroup.WithContext(ctx)
	defer context.AfterFunc(inner, c.pending.stop)()
	for range threads {
		g.Go(func() error { return c.work(inner) })
	}
	watching, watched := context.WithCancel(inner)
	var watch sync.WaitGroup
	watch.Go(func() { c.report(watching) })
	err := c.feed(inner, groups)
	if err != nil {
		g.Go(func() error { return err })
	}
	c.frontier.KeepOpen(false)
	err = g.Wait()
	watched()
	watch.Wait()
	took := c.Now().Sub(c.start) * time.Duration(threads)
	c.task.Count(JobCrawl, CounterThreadTime, took.Milliseconds())
	c.task.Count(JobCrawl, CounterIdleTime, min(time.Duration(c.idle.Load()), took).Milliseconds())
	return cmp.Or(ctx.Err(), err)
}

// Counters of the group crawl, in milliseconds: the total time of all threads, and how much of it they waited because
// politeness allowed no request.
const (
	CounterThreadTime = "thread ms"
	CounterIdleTime   = "idle ms"
)

// report reports the task's progress periodically.
func (c *crawler) report(ctx context.Context) {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n := c.frontier.Counts()
			text := fmt.Sprintf("%d fetched, %d URLs pending at %d hosts", c.pages.Load(), n.URLs,
				n.Active+n.Waiting+n.Backing)
			if c.task.Total > 1 {
				text = fmt.Sprintf("task %d of %d: %s", c.task.Index+1, c.task.Total, text)
			}
			c.task.Status(text)
		}
	}
}

// feed adds the task's URLs to the frontier.
func (c *crawler) feed(ctx context.Context, groups Groups) error {
	for key, values := range groups {
		url := string(key[hashLen:])
		wishes, err := readAllWithKeys(url, values)
		if err == nil {
			err = c.add(url, wishes)
		}
		if err != nil {
			return err
		}
		if !c.pending.waitForRoom() {
			return ctx.Err()
		}
	}
	return nil
}

// add adds InURLs of a URL to the frontier if the rules of their collections allow it.
func (c *crawler) add(url string, wishes []InURL) error {
	u, err := weburl.Parse(url)
	if err != nil || !u.IsHTTP() {
		for i := range wishes {
			if err := c.out.refuse(&wishes[i], "url", "not an http or https URL"); err != nil {
				return err
			}
		}
		return nil
	}
	kept := wishes[:0]
	for i := range wishes {
		in := &wishes[i]
		m, err := c.member(in.Collection)
		if err != nil {
			return err
		}
		if in.Robots != "" {
			c.hosts.push(u, item.Item{URL: url, Robots: in.Robots, From: in.From, Redirects: uint8(in.Redirects)}, c.minInterval)
			continue
		}
		if in.Known && !in.Due && !in.Seed || !c.seen.Add(string(in.Key())) {
			continue
		}
		if v := m.rules.Judge(u, in.link()); v.Refused() {
			if err := c.out.refuse(in, v.Rule, v.Why); err != nil {
				return err
			}
			continue
		}
		kept = append(kept, *in)
	}
	if len(kept) > 0 {
		c.push(u, kept)
	}
	return nil
}

// link returns the link that led to the URL.
func (in *InURL) link() policy.Link {
	l := policy.Link{From: in.From, Kind: page.Anchor, Depth: int32(in.Depth), Redirects: uint8(min(in.Redirects, 255)),
		Seed: in.Seed}
	switch {
	case in.Redirects > 0:
		l.Kind = page.Redirect
	case in.Seed:
		l.Kind = page.Seed
	}
	return l
}

// push enqueues a URL at its host.
func (c *crawler) push(u weburl.URL, wishes []InURL) {
	url := u.String()
	if !c.pending.add(url, wishes) {
		return
	}
	it := item.Item{URL: url, From: wishes[0].From, Depth: int32(wishes[0].Depth)}
	var interval time.Duration
	for i := range wishes {
		it.Depth = min(it.Depth, int32(wishes[i].Depth))
		interval = max(interval, time.Duration(c.members[wishes[i].Collection].Interval))
	}
	c.hosts.push(u, it, interval)
}

// work visits URLs until there are none.
func (c *crawler) work(ctx context.Context) error {
	resp := new(page.Response)
	for {
		began := time.Now()
		v, err := c.frontier.Next(ctx)
		c.idle.Add(int64(time.Since(began)))
		switch {
		case errors.Is(err, frontier.ErrDrained):
			return nil
		case err != nil:
			return err
		}
		if err := c.visit(ctx, v, resp); err != nil {
			return err
		}
		resp.Buffers.Empty()
	}
}

// loadRules loads the robots.txt answers of the task's hosts that earlier rounds fetched today.
func (c *crawler) loadRules(ctx context.Context) error {
	return EachRecord(ctx, c.Place, c.Rules, func(r Record) error {
		if host := item.HostOf(string(r.Key)); c.partitionOf(host, c.task.Total) != c.task.Index {
			return nil
		}
		rules, err := ReadRobotsRecord(r.Key, r.Value)
		if err != nil || rules.Time.Before(c.Began) && // the start of the day, or of its rerun
			(rules.RedirectTo != "" || robots.FromStatus(rules.Status, nil, c.Fetching.Agent).Temporary()) {
			return err
		}
		if rules.RedirectTo == "" {
			c.gate.Rules.Answer(rules.Origin, rules.Status, rules.Body)
		}
		c.rules.setDeferred(rules.Origin, rules.RedirectTo != "")
		return nil
	})
}
