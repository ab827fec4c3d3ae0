package crawl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/robots"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/statefile"
)

// A robotsGate parks hosts whose robots.txt is unknown, and releases their URLs when it is known. The robots.txt of a
// host with several slices is fetched in the first of this node's slices that needs it; the others wait for it.
type robotsGate struct {
	*visit.Gate
	answers *statefile.RobotsAnswers // may be nil
	hosts   *hosts
	origins *origins
	names   *names
	ledger  *ledger.Ledger
	tdm     *tdmFiles
}

// await ends a visit whose origin's rules are unknown.
func (g *robotsGate) await(v *frontier.Visit, origin string) {
	g.Await(v, origin, item.Item{From: v.URL, Seed: v.Seed, Path: g.names.intern(v.Path + "P"), Depth: v.Depth})
}

// visitRobots fetches a robots.txt, or the target of its redirect.
func (w *worker) visitRobots(ctx context.Context, v *frontier.Visit, u weburl.URL) error {
	if l, ok := w.visits.outcomes.origins.Abandoned(u.Origin()); ok {
		w.visits.frontier.Done(v, frontier.Result{})
		return w.visits.abandons.abandonOrigin(v.Robots, robotsAbandonment(l))
	}
	if !w.awaitTurn(ctx, v, u) {
		return nil
	}
	start := w.visits.cfg.Now()
	v.Tries++
	req := fetch.Request{
		URL:       v.URL,
		Trusted:   w.visits.scopeSeeds.trusts(u),
		NoCookies: true,
		OnArrival: w.answer.acquireBuffers,
	}
	w.override(&req, u)
	req.MaxBody = visit.MaxRobots
	w.turn.requested = true
	err := w.visits.fetcher.Get(ctx, req, &w.answer.resp) // without a session: it must not change the rules
	w.visits.limits.count(w.answer.resp.RawLen())
	rec := w.record(v, start)
	rec.Robots = true
	f := w.visits.outcomes.judge(ctx, v, rec, &w.answer.resp, err, visit.JudgeRobots)
	if f.Again {
		return w.retry(v, rec, f)
	}
	if rec.Failure, rec.Detail = f.Failure, f.Detail; f.Failure == page.None {
		w.visits.batches.stats.RobotsFetched(w.answer.resp.RawLen())
		w.answer.acquireSlot()
		if err := w.answer.decoder.Decode(&w.answer.resp, visit.MaxRobots); errors.Is(err, fetch.ErrDisk) {
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
	l, bad := w.robotsFailure(f)
	if !bad {
		l, bad = w.visits.gate.applyAnswer(v, u, &w.answer.resp)
		if err := w.visits.gate.storeAnswer(v, start, w.answer.resp.Status); err != nil {
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

// storeAnswer stores the rules of an origin's robots.txt, unless the answer was a redirect.
func (g *robotsGate) storeAnswer(v *frontier.Visit, at time.Time, status int) error {
	rules, known := g.Rules.Get(v.Robots)
	if !known || g.answers == nil {
		return nil
	}
	a := statefile.RobotsAnswer{Origin: v.Robots, URL: v.URL, Time: at.UTC(), Status: status, Lines: rules.Lines()}
	return g.ledger.Within(func() error { return g.answers.Add(&a) })
}

// robotsFailure reports whether an exchange ends the attempts to get an origin's rules without success. RFC 9309
// 2.3.1.4: if robots.txt is unreachable because of a server error, everything is forbidden.
func (w *worker) robotsFailure(f visitOutcome) (visit.Abandonment, bool) {
	switch {
	case f.Failure != page.None:
		return robotsAbandonment(visit.Abandonment{Failure: f.Failure, Why: f.Detail}), true
	case f.Outcome == frontier.Throttled:
		return robotsAbandonment(
			visit.Abandonment{Failure: page.NoRobots, Why: fmt.Sprintf("status %d", w.answer.resp.Status)},
		), true
	}
	return visit.Abandonment{}, false
}

// robotsAbandonment returns the reason for abandoning an origin whose robots.txt cannot be fetched.
func robotsAbandonment(l visit.Abandonment) visit.Abandonment {
	return visit.Abandonment{Failure: l.Failure, Why: "robots.txt: " + l.Why}
}

// applyAnswer applies the rules of an answer, or follows a redirect. If the redirect leads to an abandoned origin, it
// returns the reason to abandon this one.
func (g *robotsGate) applyAnswer(v *frontier.Visit, u weburl.URL, resp *page.Response) (visit.Abandonment, bool) {
	next, to := g.HandleAnswer(v, u, resp.Status, resp)
	if to.IsZero() {
		return visit.Abandonment{}, false
	}
	if l, gone := g.origins.Abandoned(to.Origin()); gone {
		return robotsAbandonment(l), true
	}
	slice := v.Host // waits for the rules, and is this node's
	if to.Host() != item.HostOfSlice(v.Host) {
		slice = g.hosts.slices.OfHost(to.Host(), next.URL)
	}
	g.Frontier.Push(slice, next)
	return visit.Abandonment{}, false
}

// applyDelay applies the delay of its host's rules to a slice that was unknown when the rules were fetched.
func (g *robotsGate) applyDelay(v *frontier.Visit, rules *robots.Rules) {
	if g.hosts.slices != nil {
		g.SetDelay(v.Host, rules)
	}
}
