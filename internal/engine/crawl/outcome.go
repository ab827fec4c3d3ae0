package crawl

import (
	"context"
	"errors"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
	"kumo/internal/state/outage"
)

// A visitOutcome is the outcome of one exchange.
type visitOutcome struct {
	visit.Verdict
	took    time.Duration // duration of the exchange
	arrived time.Time     // time of the answer; zero if there is none
	wait    time.Duration // the URL is postponed for this long, as the crawl may be offline
	excused bool          // it does not count against the host
}

// outcomes judges exchanges: whether their URLs are retried, and whether a failure counts against its host. It tracks
// the attempts since the last answer.
type outcomes struct {
	attempts attempts
	cfg      *Config
	limits   *limits
	outages  *outageMonitor
	origins  *origins
}

// judge returns the outcome of an exchange, which is already counted in v.Tries; verdict is visit.Judge or
// visit.JudgeRobots.
func (o *outcomes) judge(ctx context.Context, v *frontier.Visit, rec *page.Record, resp *page.Response, err error,
	verdict func(*page.Response, error, int, int, time.Time) visit.Verdict) visitOutcome {
	now := o.cfg.Now()
	f := visitOutcome{took: rec.Took}
	if canceled(err) {
		v.Tries--
		f.Again = true
		if errors.Is(context.Cause(ctx), errInterrupted) {
			f.Outcome = frontier.Answered // the host may have received the request, so its delay applies
		}
	} else if f.Verdict = verdict(resp, err, int(v.Tries), o.limits.maxTries(v.URL), now); err == nil {
		f.arrived = now
	}
	o.excuse(v, &f)
	return f
}

// excuse keeps failures from counting against a host that may not be at fault: if this machine had no socket, if the
// crawl may be offline, and for some time if the host has answered before.
func (o *outcomes) excuse(v *frontier.Visit, f *visitOutcome) {
	now := o.cfg.Now()
	o.attempts.record(now, f)
	if f.Failure == page.Local {
		o.outages.reportScarce(f.Detail)
		f.forgive(v, frontier.NoRequest) // the dialer has waited already
		return
	}
	by, ofLine := outage.LayerOf(f.Failure)
	if !ofLine || f.Outcome != frontier.Failed {
		return
	}
	origin := item.OriginOf(v.URL)
	h, first, last := o.origins.Failing(origin, now)
	m := &outage.FailedVisit{
		At:             now,
		Origin:         o.outages.origin(origin, o.origins.Hash(origin)),
		Layer:          by,
		ProxyFailed:    f.Own,
		AnsweredBefore: h.Answered,
		Why:            f.Detail,
	}
	if wait, off := o.outages.failed(m); off {
		f.forgive(v, frontier.NoRequest)
		f.wait = wait
		return
	}
	switch {
	case f.Own:
		f.forgive(v, frontier.Failed)
	case !f.Failure.AffectsHost():
	case h.Answered && now.Sub(first) < o.cfg.Patience,
		(!f.Again || int(h.Refusals)+1 >= originLimits.Refusals) && !o.outages.isHostFault(m, last):
		f.forgive(v, frontier.Failed)
	}
}

// forgive removes the consequences of a failure: the URL is queued again, and the visit is not counted as a try.
func (f *visitOutcome) forgive(v *frontier.Visit, outcome frontier.Outcome) {
	v.Tries--
	f.Again, f.Late, f.excused, f.Outcome = true, false, true, outcome
}

// retry ends a visit whose URL is queued again.
func (w *worker) retry(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	w.returnQuota(v)
	if f.Outcome != frontier.NoRequest {
		rec.Failure, rec.Detail = f.Failure, f.Detail
		w.visits.batches.stats.Retried(w.answer.resp.RawLen())
		w.visits.listener.Retried(rec, f.RetryAfter)
	}
	v.QueueLast = f.Late
	return w.done(v, f, v.Item)
}

// canceled reports whether kumo itself has canceled an exchange, because the crawl stops.
func canceled(err error) bool { return errors.Is(err, context.Canceled) }
