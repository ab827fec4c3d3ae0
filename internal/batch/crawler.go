package batch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/parse"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

// A crawler fetches the URLs of one reduce task. The frontier has them by host and keeps the manners; here is what each
// is wanted for.
//
//	feed     the task's groups → add, as long as there is room
//	add      judged by the rules of each collection; refused → a Document that says so; otherwise → frontier
//	visit    robots.txt known? allowed? → fetch → judge the answer: again, failed, or a Document for each collection
//	follow   a redirect on the same host, in round 0 → add; others → the next round, by way of parse and optimize
type crawler struct {
	*setup
	task     *Task
	client   *fetch.Client
	frontier *frontier.Frontier
	robots   *robots.Cache
	parsers  sync.Pool // of *parsing
	reading  chan struct{}
	start    time.Time
	least    time.Duration // interval of the collections

	emit struct {
		sync.Mutex
		do  Emit
		buf []byte
	}

	mu       sync.Mutex // guards what follows
	room     sync.Cond  // waiting has become less, or failed is set
	waiting  int        // URLs in the frontier
	failed   bool       // no room is waited for any more
	wanted   map[string][]InURL
	seen     *weburl.Set // wishes that were added, as keys
	hosts    map[string]*hostState
	awaited  map[string]bool   // origins whose robots.txt is on its way
	deferred map[string]string // origins whose robots.txt the next round asks for → where it is
	noRules  map[string]string // origins whose robots.txt did not answer → why

	idle  atomic.Int64 // nanoseconds that threads have waited for a host whose time has come
	pages atomic.Int64
}

// A hostState is what is known of a host beside the frontier.
type hostState struct {
	interval time.Duration // that its collections want
	failures int           // in a row
	dead     string        // why it was given up; "" if it was not
}

const (
	mostWaiting  = 100_000 // URLs of a task in memory
	mostThreads  = 1000
	mostDelay    = 30 * time.Second // of what a robots.txt asks for
	hostFailures = 8                // in a row, after which a host is given up for the round
	robotsTries  = 5
	throttles    = 8 // tries of a URL whose host asks to slow down
	maxRobots    = 512 << 10
	statusEvery  = 5 * time.Second
	rulesMemory  = 128 << 20 // bytes of rules in memory
)

// Rules that leave a URL out, beside those of package policy.
const ruleRobots = "robots"

func (s *setup) crawlReduce(ctx context.Context, t *Task, groups Groups, emit Emit) (err error) {
	client, err := fetch.New(s.Fetching.config())
	if err != nil {
		return err
	}
	defer client.Close()
	c := s.newCrawler(t, client, emit)
	defer func() { err = errors.Join(err, c.robots.Close()) }()
	if err := c.loadRules(ctx); err != nil {
		return err
	}
	return c.run(ctx, groups)
}

func (s *setup) newCrawler(t *Task, client *fetch.Client, emit Emit) *crawler {
	c := &crawler{setup: s, task: t, client: client, start: s.Now(), wanted: map[string][]InURL{}, seen: weburl.NewSet(),
		hosts: map[string]*hostState{}, awaited: map[string]bool{}, deferred: map[string]string{},
		noRules: map[string]string{},
		reading: make(chan struct{}, 2*runtime.GOMAXPROCS(0))}
	c.emit.do = emit
	c.room.L = &c.mu
	c.parsers.New = func() any {
		return &parsing{parser: parse.New(parse.Config{Agent: s.Fetching.Agent, Language: true})}
	}
	c.robots = robots.NewCache(robots.Config{Agent: s.Fetching.Agent, ErrorTTL: 24 * time.Hour, MaxBytes: rulesMemory,
		Now: s.Now})
	var longest time.Duration
	for i, m := range s.Collections {
		interval := time.Duration(m.Interval)
		longest = max(longest, interval)
		if i == 0 || interval < c.least {
			c.least = interval
		}
		for _, seed := range m.Seeds {
			if u, err := weburl.Parse(seed); err == nil && namesAddress(u.Hostname()) {
				client.Allow(u.Host()) // who names such an address means it
			}
		}
	}
	c.frontier = frontier.New(frontier.Config{Hosts: c.threads(), PerHost: 1, Session: 1, Delay: c.least,
		MaxDelay: max(mostDelay, longest), AddrDelay: s.Fetching.AddressDelay, Now: s.Now,
		MaxWait: cmp.Or(s.Fetching.MaxWait, 5*time.Minute)})
	c.frontier.KeepOpen(true)
	return c
}

// threads are as many as the tasks of the collections would have that share this one.
func (c *crawler) threads() int {
	n := 0
	for _, m := range c.Collections {
		n += m.Threads
	}
	return min(max(n, 1), mostThreads)
}

// namesAddress reports whether a hostname is an address, or this machine by name.
func namesAddress(hostname string) bool {
	if hostname == "localhost" || strings.HasSuffix(hostname, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil
}

func (c *crawler) run(ctx context.Context, groups Groups) error {
	threads := c.threads()
	g, inner := errgroup.WithContext(ctx)
	stop := context.AfterFunc(inner, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = true
		c.room.Broadcast()
	})
	defer stop()
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
	c.task.Count(JobCrawl, CounterThread, took.Milliseconds())
	c.task.Count(JobCrawl, CounterIdle, min(time.Duration(c.idle.Load()), took).Milliseconds())
	return cmp.Or(ctx.Err(), err)
}

// Counters of the group crawl, in milliseconds: the time of all threads, and how much of it they have waited for a host
// that politeness lets them ask.
const (
	CounterThread = "thread ms"
	CounterIdle   = "idle ms"
)

// report says how far the task is, now and then.
func (c *crawler) report(ctx context.Context) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			n := c.frontier.Counts()
			text := fmt.Sprintf("%d fetched, %d URLs wait at %d hosts", c.pages.Load(), n.URLs, n.Active+n.Waiting+n.Backing)
			if c.task.Of > 1 {
				text = fmt.Sprintf("task %d of %d: %s", c.task.Index+1, c.task.Of, text)
			}
			c.task.Status(text)
		}
	}
}

// feed adds the task's URLs.
func (c *crawler) feed(ctx context.Context, groups Groups) error {
	for key, values := range groups {
		url := string(key[hashLen:])
		wishes, err := readWishes(url, values)
		if err == nil {
			err = c.add(url, wishes)
		}
		if err != nil {
			return err
		}
		if !c.waitForRoom() {
			return ctx.Err()
		}
	}
	return nil
}

// waitForRoom waits while much is in memory, and reports whether to go on.
func (c *crawler) waitForRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.waiting >= mostWaiting && !c.failed {
		c.room.Wait()
	}
	return !c.failed
}

// add takes in a URL with what it is wanted for.
func (c *crawler) add(url string, wishes []InURL) error {
	u, err := weburl.Parse(url)
	if err != nil || !u.Web() {
		for i := range wishes {
			if err := c.refuse(&wishes[i], "url", "not a URL of the web"); err != nil {
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
			c.pushItem(u, item.Item{URL: url, Robots: in.Robots, From: in.From, Redirects: uint8(in.Redirects)}, c.least)
			continue
		}
		if in.Known && !in.Due && !in.Seed || !c.seen.Add(string(in.Key())) {
			continue
		}
		if v := m.rules.Judge(u, in.link()); v.Refused() {
			if err := c.refuse(in, v.Rule, v.Why); err != nil {
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

// link is what led to the URL.
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

// push has a URL wait at its host.
func (c *crawler) push(u weburl.URL, wishes []InURL) {
	url := u.String()
	c.mu.Lock()
	_, waits := c.wanted[url]
	if !waits {
		c.waiting++
	}
	c.wanted[url] = append(c.wanted[url], wishes...)
	c.mu.Unlock()
	if waits {
		return
	}
	it := item.Item{URL: url, From: wishes[0].From, Depth: int32(wishes[0].Depth)}
	var interval time.Duration
	for i := range wishes {
		it.Depth = min(it.Depth, int32(wishes[i].Depth))
		interval = max(interval, time.Duration(c.of[wishes[i].Collection].Interval))
	}
	c.pushItem(u, it, interval)
}

// pushItem has an item wait at its host, whose pages are to be so far apart at least. A host owes a whole interval at
// first: nobody knows when the round before has asked it last.
func (c *crawler) pushItem(u weburl.URL, it item.Item, interval time.Duration) {
	key := u.Host()
	it.Rank = it.Depth
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hosts[key]
	isNew := h == nil
	if isNew {
		h = &hostState{}
		c.hosts[key] = h
	}
	longer := interval > h.interval
	h.interval = max(h.interval, interval)
	delay := max(h.interval, c.asked(u.Origin()))
	if isNew {
		c.frontier.Arrive(key, delay, delay, it)
		return
	}
	if longer {
		c.frontier.SetDelay(key, delay)
	}
	c.frontier.Push(key, it)
}

// asked is the delay that an origin asks for, as far as that is known.
func (c *crawler) asked(origin string) time.Duration {
	rules, known := c.robots.Get(origin)
	if !known {
		return 0
	}
	delay, _ := rules.Delay()
	return delay
}

// claim takes over what a URL is wanted for.
func (c *crawler) claim(url string) []InURL {
	c.mu.Lock()
	defer c.mu.Unlock()
	wishes := c.wanted[url]
	if wishes != nil {
		delete(c.wanted, url)
		c.waiting--
		c.room.Signal()
	}
	return wishes
}

// unclaim gives it back, as the URL is to be visited again.
func (c *crawler) unclaim(url string, wishes []InURL) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, waits := c.wanted[url]; !waits {
		c.waiting++
	}
	c.wanted[url] = append(c.wanted[url], wishes...)
}

// work visits URLs until there are none.
func (c *crawler) work(ctx context.Context) error {
	resp := new(page.Response)
	for {
		began := time.Now()
		v, err := c.frontier.Next(ctx)
		c.idle.Add(int64(time.Since(began)))
		switch {
		case errors.Is(err, frontier.ErrDry):
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

// put emits a record.
func (c *crawler) put(key []byte, write func([]byte) []byte) error {
	c.emit.Lock()
	defer c.emit.Unlock()
	c.emit.buf = write(c.emit.buf[:0])
	err := c.emit.do(key, c.emit.buf)
	if cap(c.emit.buf) > 4<<20 {
		c.emit.buf = nil
	}
	return err
}

// document begins the Document of a wish.
func (c *crawler) document(in *InURL) Document {
	return Document{Collection: in.Collection, URL: in.URL, From: in.From, Depth: in.Depth, Redirects: in.Redirects,
		Seed: in.Seed, Time: c.Now().UTC(), MetaFollow: true, MetaIndex: true}
}

// refuse leaves a URL out for a rule.
func (c *crawler) refuse(in *InURL, rule, why string) error {
	d := c.document(in)
	d.Rule, d.Detail = rule, why
	c.task.Count(in.Collection, refusedBy+rule, 1)
	return c.put(d.Key(), d.Append)
}

// fail gives a URL up that brought no answer.
func (c *crawler) fail(in *InURL, failure page.Failure, detail string) error {
	d := c.document(in)
	d.Failure, d.Detail = failure, detail
	return c.put(d.Key(), d.Append)
}

// postpone leaves a URL to the next round.
func (c *crawler) postpone(in *InURL) error {
	c.task.Count(in.Collection, "left to the next round", 1)
	return c.put(in.Key(), in.Append)
}

// loadRules takes in what robots.txt files of the task's hosts have answered today.
func (c *crawler) loadRules(ctx context.Context) error {
	for _, name := range c.Rules {
		for r, err := range ReadFile(ctx, c.Place, name) {
			if err != nil {
				return err
			}
			if host := item.HostOf(string(r.Key) + "/"); c.partitionOf(host, c.task.Of) != c.task.Index {
				continue
			}
			rules, err := ReadRules(r.Key, r.Value)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			switch {
			case c.asksAgain(&rules):
			case rules.Moved == "":
				c.robots.Answer(rules.Origin, rules.Status, rules.Body)
			default:
				c.deferred[rules.Origin] = rules.Moved
			}
		}
	}
	for origin := range c.deferred {
		if _, known := c.robots.Get(origin); known {
			delete(c.deferred, origin)
		}
	}
	return nil
}

// asksAgain reports whether rules are of before the day was begun, perhaps for the second time, and are none yet.
func (c *crawler) asksAgain(r *Rules) bool {
	return r.Time.Before(c.Began) &&
		(r.Moved != "" || robots.FromStatus(r.Status, nil, c.Fetching.Agent).Temporary())
}
