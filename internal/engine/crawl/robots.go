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
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/statefile"
)

const (
	maxRobots   = 512 << 10 // a little more than a reader takes notice of
	robotsTries = 5         // of a server that has trouble
	robotsPath  = "/robots.txt"
)

// wantRobots parks the visit's host until its rules are known, and sees to it that they are fetched. robots.txt is an
// item of the host's queue like any other, so that politeness holds for it, too. Of a host that is cut into slices, it
// is one of the first slice of this node's that wants it, and the others wait for that.
func (w *worker) wantRobots(v *frontier.Visit, u weburl.URL) {
	origin := u.Origin()
	w.frontier.Park(v.Host, origin)
	switch w.origins.firstToWant(origin, w.robots) { // of the workers that may be at this host
	case settled:
		w.frontier.Unpark(v.Host, origin)
	case first:
		w.frontier.Push(v.Host, item.Item{URL: origin + robotsPath, Robots: origin, From: v.URL, Seed: v.Seed,
			Path: w.names.intern(v.Path + "P"), Depth: v.Depth})
	}
	w.frontier.Done(v, frontier.Result{Outcome: frontier.NoRequest, Again: []item.Item{v.Item}})
}

// visitRobots fetches a robots.txt, or the place that one redirects to.
func (w *worker) visitRobots(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	if l, ok := w.origins.isAbandoned(u.Origin()); ok {
		w.frontier.Done(v, frontier.Result{})
		return w.abandonOrigin(v.Robots, lostRules(l))
	}
	if !w.turn(ctx, v, u) {
		return nil
	}
	start := w.cfg.Now()
	v.Tries++
	req := fetch.Request{URL: v.URL, Trusted: w.trusts(u), NoCookies: true, Arrives: w.receive}
	w.override(&req, u)
	req.MaxBody = maxRobots
	err := w.fetcher.Get(ctx, req, &w.resp) // no session is to change the rules
	w.count(w.resp.RawLen())
	rec := w.record(v, start)
	rec.Robots = true
	f := w.excuse(v, w.judgeRobots(&v.Item, err).brokenOff(ctx))
	f.took = rec.Took
	if f.again {
		return w.retry(v, rec, f)
	}
	if rec.Failure, rec.Detail = f.failure, f.detail; f.failure == page.None {
		w.stats.RobotsFetched(w.resp.RawLen())
		w.acquireSlot()
		if err := w.reading.decoder.Decode(&w.resp, maxRobots); errors.Is(err, fetch.ErrDisk) {
			return err
		} else if err != nil {
			w.resp.Malformed = err.Error()
		}
		if rec.Digest, err = digest(&w.resp); err != nil {
			return err
		}
	}
	err = w.ledger.Within(func() error { return w.ledger.Put([]*page.Record{rec}, nil, func() []byte { return nil }) })
	if err != nil {
		return err
	}
	l, bad := w.withoutRules(f)
	if !bad {
		l, bad = w.settleRobots(v, u)
		if err := w.keepAnswer(v, start); err != nil {
			return err
		}
	}
	if bad {
		if err := w.abandonOrigin(v.Robots, l); err != nil {
			return err
		}
	}
	return w.done(v, f)
}

// keepAnswer writes down what an origin's robots.txt says, if this was the answer and no redirect.
func (w *worker) keepAnswer(v *frontier.Visit, at time.Time) error {
	rules, known := w.robots.Get(v.Robots)
	if !known || w.files.answers == nil {
		return nil
	}
	a := statefile.RobotsAnswer{Origin: v.Robots, URL: v.URL, Time: at.UTC(), Status: w.resp.Status, Lines: rules.Lines()}
	return w.ledger.Within(func() error { return w.files.answers.Add(&a) })
}

// judgeRobots decides what follows from an exchange for a robots.txt. No answer, or a bad one, is asked for again a few
// times: as long as the rules are not known, nothing may be fetched.
func (w *worker) judgeRobots(it *item.Item, err error) visitOutcome {
	f := w.judgeAnswer(it, err)
	if status := w.resp.Status; err == nil && (status >= 500 || status == http.StatusTooManyRequests) {
		f.outcome, f.ask = frontier.Throttled, w.resp.RetryAfter(w.cfg.Now())
		f.again = int(it.Tries) < max(w.mostTries(it.URL), robotsTries)
		return f
	}
	f.again = f.again && (canceled(err) || int(it.Tries) < w.mostTries(it.URL))
	return f
}

// withoutRules says whether an exchange ends the attempts to have an origin's rules in vain. RFC 9309 2.3.1.4: what
// cannot be had for a fault of the server forbids everything.
func (w *worker) withoutRules(f visitOutcome) (abandonment, bool) {
	switch {
	case f.failure != page.None:
		return lostRules(abandonment{f.failure, f.detail}), true
	case f.outcome == frontier.Throttled:
		return abandonment{page.NoRules, fmt.Sprintf("robots.txt: status %d", w.resp.Status)}, true
	}
	return abandonment{}, false
}

// settleRobots makes rules of the answer, or follows a redirect. It reports what is lost where that leads to what was
// given up.
func (w *worker) settleRobots(v *frontier.Visit, u weburl.URL) (abandonment, bool) {
	if status := w.resp.Status; status < 300 || status >= 400 {
		w.obey(v.Robots, w.robots.Answer(v.Robots, status, w.resp.Body))
		return abandonment{}, false
	}
	to, ok := w.nextHop(v, u)
	if !ok {
		w.obey(v.Robots, w.robots.Answer(v.Robots, w.resp.Status, nil)) // leads nowhere
		return abandonment{}, false
	}
	if l, gone := w.origins.isAbandoned(to.Origin()); gone {
		return lostRules(l), true
	}
	slice := v.Host // that waits for it, and is this node's
	if to.Host() != hostOf(v) {
		slice = w.slices.At(to.Host(), to.String())
	}
	w.frontier.Push(slice, item.Item{URL: to.String(), Robots: v.Robots, From: v.URL, Seed: v.Seed, Path: v.Path,
		Depth: v.Depth, Redirects: v.Redirects + 1})
	return abandonment{}, false
}

// nextHop is where a robots.txt redirects to, if that can be fetched.
func (w *worker) nextHop(v *frontier.Visit, u weburl.URL) (weburl.URL, bool) {
	if v.Redirects >= robots.MaxRedirects {
		return weburl.URL{}, false
	}
	to, err := u.Resolve(w.resp.Header.Get("Location"))
	if err != nil || !to.Web() {
		return weburl.URL{}, false
	}
	to = to.Canonical()
	return to, w.rules.Block.Match(to) == ""
}

// obey lets the URLs of an origin's host go, now that its rules are known.
func (w *worker) obey(origin string, rules *robots.Rules) {
	w.origins.rulesCame(origin)
	delay, asked := rules.Delay()
	for slice := range w.slicesOf(origin) {
		if asked {
			w.frontier.SetDelay(slice, delay)
		}
		w.frontier.Unpark(slice, origin)
	}
}

// learnDelay has a slice of a host owe the delay that the host asks for, which its rules were obeyed without: it was
// not known then.
func (w *worker) learnDelay(v *frontier.Visit, rules *robots.Rules) {
	if w.slices == nil {
		return
	}
	if delay, asked := rules.Delay(); asked {
		w.frontier.SetDelay(v.Host, delay)
	}
}
