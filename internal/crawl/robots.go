package crawl

import (
	"context"
	"crypto/sha1"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/robots"
	"kumo/internal/weburl"
)

const (
	maxRobots     = 512 << 10 // a little more than a reader takes notice of
	robotsTries   = 5         // of a server that has trouble
	robotsHops    = 5         // redirects that are followed, RFC 9309 2.3.1.2
	robotsPath    = "/robots.txt"
	robotsNowhere = "robots.txt redirects to where it cannot be fetched"
)

// wantRobots parks the visit's host until its rules are known, and sees to it that they are fetched. robots.txt is an item of the
// host's queue like any other, so that politeness holds for it, too.
func (w *worker) wantRobots(v *frontier.Visit, u weburl.URL) {
	origin := u.Origin()
	if w.firstToWant(origin) { // of the workers that may be at this host
		w.frontier.Park(v.Host)
		w.frontier.Push(v.Host, frontier.Item{URL: origin + robotsPath, Robots: origin, From: v.URL, Seed: v.Seed,
			Path: w.intern(v.Path + "P")})
	}
	w.frontier.Done(v, frontier.Result{Outcome: frontier.NoRequest, Again: []frontier.Item{v.Item}})
}

func (w *worker) firstToWant(origin string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.rules.Get(origin); known || w.wanted[origin] {
		return false
	}
	w.wanted[origin] = true
	return true
}

// visitRobots fetches a robots.txt, or the place that one redirects to.
func (w *worker) visitRobots(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	if !w.turn(ctx, v, u) {
		return nil
	}
	start := w.cfg.Now()
	v.Tries++
	err := w.fetcher.Get(ctx, fetch.Request{URL: v.URL, Trusted: w.trusted[u.Origin()], MaxBody: maxRobots}, &w.resp)
	w.count(int64(len(w.resp.Raw)))
	rec := w.record(v, start)
	rec.Robots = true
	f := w.judgeRobots(&v.Item, err)
	if f.again {
		return w.retry(v, rec, f)
	}
	if rec.Failure, rec.Detail = f.failure, f.detail; f.failure == page.None {
		w.stats.RobotsFetched(int64(len(w.resp.Raw)))
		if err := fetch.Decode(&w.resp, maxRobots); err != nil {
			w.resp.Malformed = err.Error()
		}
		rec.Digest = sha1.Sum(w.resp.Payload)
	}
	if err := w.committer.put(rec, nil, func() []byte { return nil }); err != nil {
		return err
	}
	if l, bad := w.withoutRules(f); bad {
		if u, err := weburl.Parse(v.Robots); err == nil {
			if err := w.giveUp(v.Robots, u.Host(), l); err != nil {
				return err
			}
		}
		return w.done(v, f)
	}
	w.settleRobots(v, u)
	return w.done(v, f)
}

// judgeRobots decides what follows from an exchange for a robots.txt. No answer, or a bad one, is asked for again a few
// times: as long as the rules are not known, nothing may be fetched.
func (w *worker) judgeRobots(it *frontier.Item, err error) fate {
	f := w.judgeAnswer(it, err)
	if status := w.resp.Status; err == nil && (status >= 500 || status == http.StatusTooManyRequests) {
		f.outcome, f.ask = frontier.Throttled, w.retryAfter()
		f.again = int(it.Tries) < max(w.cfg.Tries, robotsTries)
		return f
	}
	f.again = f.again && (canceled(err) || int(it.Tries) < w.cfg.Tries)
	return f
}

// withoutRules says whether an exchange ends the attempts to have an origin's rules in vain. RFC 9309 2.3.1.4: what cannot be
// had for a fault of the server forbids everything.
func (w *worker) withoutRules(f fate) (lost, bool) {
	switch {
	case f.failure != page.None:
		return lost{f.failure, "robots.txt: " + f.detail}, true
	case f.outcome == frontier.Throttled:
		return lost{page.NoRules, fmt.Sprintf("robots.txt: status %d", w.resp.Status)}, true
	}
	return lost{}, false
}

// settleRobots makes rules of the answer, or follows a redirect.
func (w *worker) settleRobots(v *frontier.Visit, u weburl.URL) {
	switch status := w.resp.Status; {
	case status < 300 || status >= 400:
		w.obey(v.Robots, w.rules.Answer(v.Robots, status, w.resp.Body))
	case !w.followRobots(v, u):
		rules := robots.AllowAll(robotsNowhere)
		w.rules.Put(v.Robots, rules)
		w.obey(v.Robots, rules)
	}
}

// followRobots queues the next hop at the host that it leads to.
func (w *worker) followRobots(v *frontier.Visit, u weburl.URL) bool {
	if v.Redirects >= robotsHops {
		return false
	}
	to, err := u.Resolve(w.resp.Header.Get("Location"))
	if err != nil || to.Scheme() != "http" && to.Scheme() != "https" {
		return false
	}
	to = to.Canonical()
	if w.block.Match(to) != "" {
		return false
	}
	w.frontier.Push(to.Host(), frontier.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Seed: v.Seed, Path: v.Path,
		Redirects: v.Redirects + 1})
	return true
}

// obey lets the URLs of an origin's host go, now that its rules are known.
func (w *worker) obey(origin string, rules *robots.Rules) {
	w.forget(origin)
	u, err := weburl.Parse(origin)
	if err != nil {
		return // cannot be: origins come from parsed URLs
	}
	if delay, asked := rules.Delay(); asked {
		w.frontier.SetDelay(u.Host(), delay)
	}
	w.frontier.Unpark(u.Host())
}

// forget says that an origin's robots.txt is no longer on its way.
func (w *worker) forget(origin string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.wanted, origin)
}

// namesAddress reports whether a hostname is an address, or this machine by name: a seed that says so is allowed to be there.
func namesAddress(hostname string) bool {
	if hostname == "localhost" || strings.HasSuffix(hostname, ".localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(hostname, "[]"))
	return err == nil
}
