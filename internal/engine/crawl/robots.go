package crawl

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
)

const (
	maxRobots   = 512 << 10 // a little more than a reader takes notice of
	robotsTries = 5         // of a server that has trouble
	robotsPath  = "/robots.txt"
)

// A robotsGate parks the hosts whose robots.txt is not known, and lets their URLs go when it is.
type robotsGate struct {
	robots   *robots.Cache
	answers  *statefile.RobotsAnswers // may be nil
	block    *policy.BlockList
	hosts    *hosts
	origins  *origins
	names    *names
	frontier *frontier.Frontier
	ledger   *ledger.Ledger
}

// wantRobots parks the visit's host until its rules are known, and sees to it that they are fetched. robots.txt is an
// item of the host's queue like any other, so that politeness holds for it, too. Of a host that is cut into slices, it
// is one of the first slice of this node's that wants it, and the others wait for that.
func (g *robotsGate) wantRobots(v *frontier.Visit, u weburl.URL) {
	origin := u.Origin()
	g.frontier.Park(v.Host, origin)
	switch g.origins.firstToWant(origin, g.robots) { // of the workers that may be at this host
	case settled:
		g.frontier.Unpark(v.Host, origin)
	case first:
		g.frontier.Push(v.Host, item.Item{URL: origin + robotsPath, Robots: origin, From: v.URL, Seed: v.Seed,
			Path: g.names.intern(v.Path + "P"), Depth: v.Depth})
	}
	g.frontier.Done(v, frontier.Result{Outcome: frontier.NoRequest, Again: []item.Item{v.Item}})
}

// visitRobots fetches a robots.txt, or the place that one redirects to.
func (w *worker) visitRobots(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	if l, ok := w.visits.outcomes.origins.isAbandoned(u.Origin()); ok {
		w.visits.frontier.Done(v, frontier.Result{})
		return w.visits.abandons.abandonOrigin(v.Robots, lostRules(l))
	}
	if !w.turn(ctx, v, u) {
		return nil
	}
	start := w.visits.cfg.Now()
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: w.visits.roots.trusts(u), NoCookies: true, Arrives: w.answer.receive}
	w.override(&req, u)
	req.MaxBody = maxRobots
	err := w.visits.fetcher.Get(ctx, req, &w.answer.resp) // no session is to change the rules
	w.visits.limits.count(w.answer.resp.RawLen())
	rec := w.record(v, start)
	rec.Robots = true
	f := w.visits.outcomes.excuse(v, w.visits.outcomes.judgeRobots(&v.Item, &w.answer.resp, err).brokenOff(ctx))
	f.took = rec.Took
	if f.again {
		return w.retry(v, rec, f)
	}
	if rec.Failure, rec.Detail = f.failure, f.detail; f.failure == page.None {
		w.visits.batches.stats.RobotsFetched(w.answer.resp.RawLen())
		w.answer.acquireSlot()
		if err := w.answer.decoder.Decode(&w.answer.resp, maxRobots); errors.Is(err, fetch.ErrDisk) {
			return err
		} else if err != nil {
			w.answer.resp.Malformed = err.Error()
		}
		if rec.Digest, err = digest(&w.answer.resp); err != nil {
			return err
		}
	}
	err = w.visits.ledger.Within(func() error {
		return w.visits.ledger.Put([]*page.Record{rec}, nil, func() []byte { return nil })
	})
	if err != nil {
		return err
	}
	l, bad := w.withoutRules(f)
	if !bad {
		l, bad = w.visits.gate.settleRobots(v, u, &w.answer.resp)
		if err := w.visits.gate.keepAnswer(v, start, w.answer.resp.Status); err != nil {
			return err
		}
	}
	if bad {
		if err := w.visits.abandons.abandonOrigin(v.Robots, l); err != nil {
			return err
		}
	}
	return w.done(v, f)
}

// keepAnswer writes down what an origin's robots.txt says, if this was the answer and no redirect.
func (g *robotsGate) keepAnswer(v *frontier.Visit, at time.Time, status int) error {
	rules, known := g.robots.Get(v.Robots)
	if !known || g.answers == nil {
		return nil
	}
	a := statefile.RobotsAnswer{Origin: v.Robots, URL: v.URL, Time: at.UTC(), Status: status, Lines: rules.Lines()}
	return g.ledger.Within(func() error { return g.answers.Add(&a) })
}

// judgeRobots decides what follows from an exchange for a robots.txt. No answer, or a bad one, is asked for again a few
// times: as long as the rules are not known, nothing may be fetched.
func (o *outcomes) judgeRobots(it *item.Item, resp *page.Response, err error) visitOutcome {
	f := o.judgeAnswer(it, resp, err)
	if status := resp.Status; err == nil && (status >= 500 || status == http.StatusTooManyRequests) {
		f.outcome, f.ask = frontier.Throttled, resp.RetryAfter(o.cfg.Now())
		f.again = int(it.Tries) < max(o.limits.mostTries(it.URL), robotsTries)
		return f
	}
	f.again = f.again && (canceled(err) || int(it.Tries) < o.limits.mostTries(it.URL))
	return f
}

// withoutRules says whether an exchange ends the attempts to have an origin's rules in vain. RFC 9309 2.3.1.4: what
// cannot be had for a fault of the server forbids everything.
func (w *worker) withoutRules(f visitOutcome) (abandonment, bool) {
	switch {
	case f.failure != page.None:
		return lostRules(abandonment{f.failure, f.detail}), true
	case f.outcome == frontier.Throttled:
		return abandonment{page.NoRules, fmt.Sprintf("robots.txt: status %d", w.answer.resp.Status)}, true
	}
	return abandonment{}, false
}

// settleRobots makes rules of the answer, or follows a redirect. It reports what is lost where that leads to what was
// given up.
func (g *robotsGate) settleRobots(v *frontier.Visit, u weburl.URL, resp *page.Response) (abandonment, bool) {
	if status := resp.Status; status < 300 || status >= 400 {
		g.obey(v.Robots, g.robots.Answer(v.Robots, status, resp.Body))
		return abandonment{}, false
	}
	to, ok := g.nextHop(v, u, resp)
	if !ok {
		g.obey(v.Robots, g.robots.Answer(v.Robots, resp.Status, nil)) // leads nowhere
		return abandonment{}, false
	}
	if l, gone := g.origins.isAbandoned(to.Origin()); gone {
		return lostRules(l), true
	}
	slice := v.Host // that waits for it, and is this node's
	if to.Host() != hostOf(v) {
		slice = g.hosts.slices.At(to.Host(), to.String())
	}
	g.frontier.Push(slice, item.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Seed: v.Seed, Path: v.Path,
		Depth: v.Depth, Redirects: v.Redirects + 1})
	return abandonment{}, false
}

// nextHop is where a robots.txt redirects to, if that can be fetched.
func (g *robotsGate) nextHop(v *frontier.Visit, u weburl.URL, resp *page.Response) (weburl.URL, bool) {
	if v.Redirects >= robots.MaxRedirects {
		return weburl.URL{}, false
	}
	to, err := u.Resolve(resp.Header.Get("Location"))
	if err != nil || !to.Web() {
		return weburl.URL{}, false
	}
	to = to.Canonical()
	return to, g.block.Match(to) == ""
}

// obey lets the URLs of an origin's host go, now that its rules are known.
func (g *robotsGate) obey(origin string, rules *robots.Rules) {
	g.origins.rulesCame(origin)
	delay, asked := rules.Delay()
	for slice := range g.hosts.slicesOf(origin) {
		if asked {
			g.frontier.SetDelay(slice, delay)
		}
		g.frontier.Unpark(slice, origin)
	}
}

// learnDelay has a slice of a host owe the delay that the host asks for, which its rules were obeyed without: it was
// not known then.
func (g *robotsGate) learnDelay(v *frontier.Visit, rules *robots.Rules) {
	if g.hosts.slices == nil {
		return
	}
	if delay, asked := rules.Delay(); asked {
		g.frontier.SetDelay(v.Host, delay)
	}
}
