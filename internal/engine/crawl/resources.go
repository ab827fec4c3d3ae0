package crawl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/render"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
)

// What a rendered page requests is answered here, by the rules of the crawl: robots.txt, block list and excluded URLs,
// private addresses, sessions, proxies, rate and limits. Resources may be on any host, as those of --embeds. They do
// not wait for their host's delay, which would make a page of fifty resources take a minute; but a host gets no more of
// these requests at once than it may have connections, and none while the crawl backs off from it.

const (
	maxResource       = 16 << 20 // bytes of a resource, decoded; a longer one fails
	maxResourcesBytes = 64 << 20 // bytes of all resources of a page; later ones are blocked
	maxReloads        = 3        // a page may load itself again so often
)

// resources fetches what rendered pages request.
type resources struct {
	cfg        *Config
	rules      *policy.Rules
	robots     *robots.Cache
	fetcher    visit.Fetcher
	header     func(trusted bool) http.Header
	scopeSeeds *scopeSeeds
	limits     *limits
	origins    *origins
	frontier   *frontier.Frontier
	hosts      *hosts
	known      *known
	names      *names
	ledger     *ledger.Ledger
	decoder    *fetch.Decoder
	stats      *stats.Counter
	shared     Resources // of the process; nil: it has no other crawl

	loaded   *loaded // nil: no embeds are fetched
	cache    resourceCache
	flights  singleflight.Group // by cache key, and by origin for robots.txt
	gates    hostGates
	requests atomic.Int64
	hits     atomic.Int64
}

// A renderedPage answers the requests of one page.
type renderedPage struct {
	resources *resources
	item      *item.Item
	url       weburl.URL
	document  *render.Response
	loads     atomic.Int32
	bytes     atomic.Int64

	mu   sync.Mutex // guards lead
	lead string     // another page that a script has loaded; "" if none
}

// target returns the page to which the page's script leads; "" if there is none.
func (p *renderedPage) target() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lead
}

// answer is the page's render.Answerer.
func (p *renderedPage) answer(ctx context.Context, q *render.Request) (*render.Response, error) {
	u, err := weburl.Parse(q.URL)
	if err != nil {
		return nil, err
	}
	u = u.Canonical()
	if q.Document {
		return p.answerDocument(u)
	}
	if p.bytes.Load() > maxResourcesBytes {
		return nil, fmt.Errorf("%w: the page's resources exceed %s", render.ErrBlocked, stats.Bytes(maxResourcesBytes))
	}
	a, err := p.resources.get(ctx, p.item, u, q)
	if err != nil {
		return nil, err
	}
	p.bytes.Add(int64(len(a.Body)))
	return a, nil
}

// answerDocument answers with the page as it was fetched. A script's way to another page is a link of this one.
func (p *renderedPage) answerDocument(u weburl.URL) (*render.Response, error) {
	if n := p.loads.Add(1); n == 1 || u == p.url && n <= maxReloads {
		return p.document, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lead == "" && u != p.url {
		p.lead = u.String()
	}
	return &render.Response{Status: http.StatusNoContent}, nil
}

// get returns a resource, from the cache if a page has requested it before.
func (r *resources) get(ctx context.Context, it *item.Item, u weburl.URL, q *render.Request) (*render.Response, error) {
	if err := r.check(it, u); err != nil {
		return nil, err
	}
	key := resourceKey(u, q)
	if a := r.cache.get(key); a != nil {
		r.hits.Add(1)
		return a, nil
	}
	flight := r.flights.DoChan(key, func() (any, error) { return r.fetch(ctx, it, u, q, key) })
	select {
	case res := <-flight:
		if canceled(res.Err) && ctx.Err() == nil { // the page that was first to request it has ended
			return r.fetch(ctx, it, u, q, key)
		}
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*render.Response), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// check applies the rules that do not depend on the server. Patterns of --include select pages, so they do not apply.
func (r *resources) check(it *item.Item, u weburl.URL) error {
	rules := *r.rules
	rules.Embeds, rules.Include = true, nil
	v := rules.JudgeURL(u, policy.Link{From: it.URL, Kind: page.Resource, Depth: it.Depth, Path: it.Path})
	switch {
	case v.Rule != "":
		return fmt.Errorf("%w: %s: %s", render.ErrBlocked, v.Rule, v.Why)
	case v.OffHost:
		return fmt.Errorf("%w: %s", render.ErrBlocked, v.Why)
	}
	return nil
}

// ownFields are request fields that differ between pages and matter to no resource.
var ownFields = []string{"Referer", "Accept-Language"}

// resourceKey identifies equal requests. Fields that a script sets, such as Authorization, are part of it.
func resourceKey(u weburl.URL, q *render.Request) string {
	var b strings.Builder
	b.WriteString(q.Method + " " + u.String())
	for _, name := range slices.Sorted(maps.Keys(q.Header)) {
		if !slices.Contains(ownFields, name) {
			b.WriteString("\n" + name + ": " + strings.Join(q.Header[name], ", "))
		}
	}
	return b.String()
}

// fetch requests a resource, records it, and adds it to the cache.
func (r *resources) fetch(ctx context.Context, it *item.Item, u weburl.URL, q *render.Request, key string) (
	*render.Response, error) {
	if err := r.checkHost(ctx, it, u); err != nil {
		return nil, err
	}
	leave, err := r.gates.enter(ctx, u.Host(), r.connections(u.Host()))
	if err != nil {
		return nil, err
	}
	defer leave()
	req := fetch.Request{URL: u.String(), Trusted: r.scopeSeeds.trusts(u), Head: q.Method == http.MethodHead}
	r.setHeader(&req, u, q)
	var resp page.Response
	defer resp.Buffers.Empty()
	if err := r.exchange(ctx, it, u, req, &resp); err != nil {
		return nil, err
	}
	if resp.Truncated != page.Whole {
		return nil, fmt.Errorf("the response is incomplete: %s", resp.Truncated)
	}
	if err := r.decoder.Decode(&resp, maxResource); errors.Is(err, fetch.ErrTooLong) || errors.Is(err, fetch.ErrDisk) {
		return nil, err
	}
	a := &render.Response{Status: resp.Status, Header: resp.Header.Clone(), Body: bytes.Clone(resp.Body)}
	lasts := a.Status < 500 && a.Status != http.StatusTooManyRequests // missing ones, too: favicon.ico is often missing
	if lasts {
		r.loaded.add(u.String(), q.Method, a)
	}
	if lasts && !strings.Contains(a.Header.Get("Cache-Control"), "no-store") {
		r.cache.put(key, a)
	}
	return a, nil
}

func (r *resources) connections(host string) int {
	if own := r.cfg.Overrides.ForHost(host).PerHost; own != nil {
		return *own
	}
	return max(r.cfg.PerHost, 1)
}

// setHeader sets the fields of the crawl, and those of the page's script.
func (r *resources) setHeader(req *fetch.Request, u weburl.URL, q *render.Request) {
	h := r.header(req.Trusted)
	if len(r.cfg.Overrides.All()) > 0 {
		if agent := r.cfg.Overrides.ForHost(u.Host()).UserAgent; agent != nil {
			h.Set("User-Agent", *agent)
		}
		maps.Copy(h, r.cfg.Overrides.ForURL(u).Header)
	}
	for name, values := range q.Header {
		if fetch.CheckFields(http.Header{name: values}) == nil {
			h[name] = values
		}
	}
	req.Header = h
}

// checkHost applies the rules of the resource's host: robots.txt, and that the crawl does not avoid it now.
func (r *resources) checkHost(ctx context.Context, it *item.Item, u weburl.URL) error {
	if l, gone := r.origins.Abandoned(u.Origin()); gone {
		return fmt.Errorf("the host was abandoned: %s", l.Why)
	}
	if u.Host() != item.HostOf(item.OriginOf(it.URL)) {
		slice := u.Host()
		if r.hosts.slices != nil {
			slice = r.hosts.slices.OfHost(u.Host(), u.String())
		}
		info, _ := r.frontier.Host(slice)
		backs := info.Why == frontier.WhyBackoff || info.Why == frontier.WhyRetryAfter
		if backs && info.Next.After(r.cfg.Now()) || r.gates.avoids(u.Host(), r.cfg.Now()) {
			return errors.New("the crawl backs off from the host")
		}
	}
	if r.cfg.IgnoreRobots {
		return nil
	}
	rules, err := r.rulesOf(ctx, it, u)
	if err != nil {
		return err
	}
	if ok, line := rules.Allowed(u.RequestURI()); !ok {
		return fmt.Errorf("%w: robots.txt: %s", render.ErrBlocked, line)
	}
	return nil
}

// rulesOf returns the rules of an origin, whose robots.txt it fetches if necessary.
func (r *resources) rulesOf(ctx context.Context, it *item.Item, u weburl.URL) (*robots.Rules, error) {
	if rules, known := r.robots.Get(u.Origin()); known {
		return rules, nil
	}
	rules, err, _ := r.flights.Do("robots.txt of "+u.Origin(), func() (any, error) { return r.fetchRobots(ctx, it, u) })
	if canceled(err) && ctx.Err() == nil { // the page that was first to need it has ended
		return r.fetchRobots(ctx, it, u)
	}
	if err != nil {
		return nil, err
	}
	return rules.(*robots.Rules), nil
}

// fetchRobots fetches a robots.txt. If it is unavailable, everything is forbidden, as for pages.
func (r *resources) fetchRobots(ctx context.Context, it *item.Item, u weburl.URL) (*robots.Rules, error) {
	leave, err := r.gates.enter(ctx, u.Host(), r.connections(u.Host()))
	if err != nil {
		return nil, err
	}
	defer leave()
	if rules, known := r.robots.Get(u.Origin()); known { // fetched while this waited
		return rules, nil
	}
	at, err := weburl.Parse(u.Origin() + visit.RobotsPath)
	if err != nil {
		return nil, err
	}
	var resp page.Response
	defer resp.Buffers.Empty()
	for range robots.MaxRedirects + 1 {
		req := fetch.Request{URL: at.String(), MaxBody: visit.MaxRobots, NoCookies: true}
		if err := r.exchange(ctx, it, at, req, &resp); err != nil {
			return nil, fmt.Errorf("robots.txt: %w", err)
		}
		to, err := at.Resolve(resp.Header.Get("Location"))
		if resp.Status/100 != 3 || err != nil || !to.IsHTTP() || r.rules.Block.Match(to.Canonical()) != "" {
			break
		}
		at = to.Canonical()
	}
	if resp.Status >= 500 || resp.Status == http.StatusTooManyRequests {
		r.gates.avoid(u.Host(), r.cfg.Now().Add(backOff(&resp, r.cfg.Now())))
		return nil, fmt.Errorf("%w: robots.txt has status %d", render.ErrBlocked, resp.Status)
	}
	body := resp.Body
	if resp.Status/100 == 3 {
		body = nil
	} else if err := r.decoder.Decode(&resp, visit.MaxRobots); err == nil || len(resp.Body) > 0 {
		body = resp.Body
	}
	return r.robots.Answer(u.Origin(), resp.Status, body), nil
}

// exchange makes a request within the crawl's rate, and records it.
func (r *resources) exchange(ctx context.Context, it *item.Item, u weburl.URL, req fetch.Request,
	resp *page.Response) error {
	if r.shared != nil && !r.shared.AwaitAction(ctx, nil) || !r.limits.rate.wait(ctx, nil) {
		return context.Cause(ctx)
	}
	start := r.cfg.Now()
	err := r.fetcher.Get(ctx, req, resp)
	if canceled(err) {
		return err
	}
	r.requests.Add(1)
	r.limits.count(resp.RawLen())
	r.limits.quota.AddBytes(u.Host(), resp.RawLen())
	r.stats.ResourceFetched(resp.RawLen())
	if resp.Status == http.StatusTooManyRequests || resp.Status == http.StatusServiceUnavailable {
		r.gates.avoid(u.Host(), r.cfg.Now().Add(backOff(resp, r.cfg.Now())))
	}
	rec := &page.Record{URL: req.URL, Final: req.URL, From: it.URL, Seed: it.Seed, Path: it.Path, Depth: int(it.Depth),
		Time: start, Took: r.cfg.Now().Sub(start), Tries: 1, Helper: true}
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		rec.Failure, rec.Detail = fe.Failure, err.Error()
	}
	if resp.RawLen() > 0 || resp.Status != 0 {
		rec.Response = resp
	}
	if failed := r.record(rec); failed != nil {
		return failed
	}
	return err
}

// record stores the record of a resource. The page's own commit makes it durable.
func (r *resources) record(rec *page.Record) (err error) {
	if len(rec.Path) < maxHelperPath {
		rec.Path = r.names.intern(rec.Path + "E")
	}
	if rec.Response != nil && rec.Failure == page.None {
		if rec.Digest, err = digest(rec.Response); err != nil {
			return err
		}
		if ref, known, err := r.known.digests.Get(rec.Digest); err == nil && known && rec.Response.Status/100 == 2 &&
			ref.Chunked == [20]byte{} && rec.Response.PayloadLen() == rec.Response.RawLen()-int64(rec.Response.HeadLen) &&
			rec.Response.PayloadLen() > 0 {
			r := page.Ref(ref)
			rec.Revisit = &r
		}
	}
	return r.ledger.Within(func() error {
		return r.ledger.Put([]*page.Record{rec}, nil, func() []byte {
			if rec.Failure == page.None && rec.Location.ID != "" && rec.Revisit == nil && rec.Response.PayloadLen() > 0 {
				r.known.digests.Put(rec.Digest, seen.Ref(page.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Location.ID,
					Chunked: rec.Location.Chunked}))
			}
			return nil
		})
	})
}

const (
	maxHelperPath  = 50 // letters of a discovery path in crawl.log
	defaultBackOff = 30 * time.Second
)

// backOff returns for how long a host that has asked for fewer requests gets none for resources.
func backOff(resp *page.Response, now time.Time) time.Duration {
	return min(max(resp.RetryAfter(now), defaultBackOff), time.Hour)
}
