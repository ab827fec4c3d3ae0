package visit

import (
	"hash/maphash"
	"iter"
	"sync"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
)

const (
	// MaxRobots is how many bytes of a robots.txt are fetched, a little more than the parser reads.
	MaxRobots = 512 << 10
	// RobotsPath is the path of robots.txt.
	RobotsPath = "/robots.txt"
	// GuessedSitemap is the path of a sitemap that is tried if robots.txt names none.
	GuessedSitemap = "/sitemap.xml"
	// MaxNested is the maximum number of sitemap indexes that lead to a sitemap.
	MaxNested = 4

	maxSitemaps = 1000    // named by one robots.txt
	maxAwaited  = 1 << 15 // a forgotten robots.txt may be fetched twice
)

// A Gate parks hosts of origins whose robots.txt is unknown, has it fetched, and then releases their URLs. A robots.txt
// is an ordinary item of its host's queue, so politeness applies to it.
//
// Invariant: a fetch of a robots.txt ends with HandleAnswer, or with Forget and then Frontier.Unpark.
type Gate struct {
	Rules       *robots.Cache
	Frontier    *frontier.Frontier
	Block       *policy.BlockList                    // URLs of robots.txt that are not fetched; may be nil
	Hosts       func(origin string) iter.Seq[string] // the queues with an origin's URLs; nil: its host
	Unavailable func(origin string) bool             // the origin's robots.txt will not be fetched
	// returns the delay to apply if robots.txt asks for d; nil: d
	Delay func(host string, d time.Duration) time.Duration

	salt    maphash.Seed
	mu      sync.Mutex                    // guards awaited
	awaited *bounded.Recent[uint64, bool] // origins whose robots.txt is queued or being fetched
}

// NewGate initializes a Gate whose exported fields are set, and returns it.
func NewGate(g *Gate) *Gate {
	if g.Hosts == nil {
		g.Hosts = func(origin string) iter.Seq[string] {
			return func(yield func(string) bool) { yield(item.HostOf(origin)) }
		}
	}
	g.salt, g.awaited = maphash.MakeSeed(), bounded.NewRecent[uint64, bool](maxAwaited)
	return g
}

// Await ends a visit to an origin whose rules are unknown: its URL is queued again, and its host is parked until they
// are known. fetch is the item of the robots.txt, without URL and origin.
func (g *Gate) Await(v *frontier.Visit, origin string, fetch item.Item) {
	g.Frontier.Park(v.Host, origin)
	known, first := g.Request(origin)
	switch {
	case known:
		g.Frontier.Unpark(v.Host, origin)
	case first:
		fetch.URL, fetch.Robots = origin+RobotsPath, origin
		g.Frontier.Push(v.Host, fetch)
	}
	g.Frontier.Done(v, frontier.Result{Requeue: []item.Item{v.Item}})
}

// Request reports whether an origin's rules are known, or will not be fetched. If not, it reports whether the caller is
// the first to need them and must have them fetched.
func (g *Gate) Request(origin string) (known, first bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, known = g.Rules.Get(origin); known || g.Unavailable(origin) {
		return true, false
	}
	key := maphash.String(g.salt, origin)
	if _, awaited := g.awaited.Get(key); awaited {
		return false, false
	}
	g.awaited.Put(key, true)
	return false, true
}

// Forget records that an origin's robots.txt is no longer being fetched.
func (g *Gate) Forget(origin string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.awaited.Delete(maphash.String(g.salt, origin))
}

// HandleAnswer applies the answer to a request for robots.txt, with status 0 if there is none, and releases the
// origin's URLs. If the answer is a redirect, it does nothing and returns the next item to fetch, and its URL.
func (g *Gate) HandleAnswer(
	v *frontier.Visit,
	u weburl.URL,
	status int,
	resp *page.Response,
) (next item.Item, to weburl.URL) {
	body := resp.Body
	if status >= 300 && status < 400 {
		if to, ok := g.nextHop(v, u, resp); ok {
			return item.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Seed: v.Seed, Path: v.Path, Depth: v.Depth,
				Redirects: v.Redirects + 1}, to
		}
		body = nil // no valid target
	}
	rules := g.Rules.Answer(v.Robots, status, body)
	g.Forget(v.Robots)
	for host := range g.Hosts(v.Robots) {
		g.SetDelay(host, rules)
		g.Frontier.Unpark(host, v.Robots)
	}
	return item.Item{}, weburl.URL{}
}

// SetDelay applies the rules' delay, if any, to a host.
func (g *Gate) SetDelay(host string, rules *robots.Rules) {
	delay, asked := rules.Delay()
	if !asked {
		return
	}
	if g.Delay != nil {
		delay = g.Delay(host, delay)
	}
	g.Frontier.SetDelay(host, delay)
}

func (g *Gate) nextHop(v *frontier.Visit, u weburl.URL, resp *page.Response) (weburl.URL, bool) {
	to, err := u.Resolve(resp.Header.Get("Location"))
	if err != nil || !to.IsHTTP() || v.Redirects >= robots.MaxRedirects {
		return weburl.URL{}, false
	}
	to = to.Canonical()
	return to, g.Block.Match(to) == ""
}

// Sitemaps returns the sitemaps that an origin's rules (may be nil) name, or the default sitemap if it may be guessed,
// and the URL of the robots.txt.
func Sitemaps(origin string, rules *robots.Rules, mode policy.Sitemaps) (base weburl.URL, all []weburl.URL) {
	base, err := weburl.Parse(origin + RobotsPath)
	if err != nil || mode == policy.SitemapsIgnored {
		return base, nil
	}
	var named []string
	if rules != nil {
		named = rules.Sitemaps()
	}
	if len(named) == 0 && mode == policy.SitemapsGuessed {
		named = []string{GuessedSitemap}
	}
	for _, ref := range named[:min(len(named), maxSitemaps)] {
		if to, err := base.Resolve(ref); err == nil && to.IsHTTP() {
			all = append(all, to.Canonical())
		}
	}
	return base, all
}
