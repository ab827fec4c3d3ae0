package crawl

import (
	"errors"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/state/frontier"
	"kumo/internal/state/outage"
)

// A visitOutcome is what follows from one exchange.
type visitOutcome struct {
	again   bool             // the URL waits again
	late    bool             // after the host's other URLs, as it may be at fault alone
	outcome frontier.Outcome // for the host
	ask     time.Duration    // Retry-After
	took    time.Duration    // by the exchange
	own     bool             // it is this machine's fault, or its proxy's
	came    time.Time        // arrival of the answer; zero if there is none
	wait    time.Duration    // the URL is postponed for this long, as the crawl may be offline
	excused bool             // and not to be held against the host
	failure page.Failure
	detail  string
}

// outcomes judges exchanges: whether their URLs are tried again, and whether a failure counts against its host. It
// guards what is known of the attempts since the last answer.
type outcomes struct {
	attempts attempts
	cfg      *Config
	limits   *limits
	line     *line
	origins  *origins
}

// judgeAnswer decides what follows from an exchange, it.Tries counting it already.
func (o *outcomes) judgeAnswer(it *item.Item, resp *page.Response, err error) visitOutcome {
	if err != nil {
		return o.judgeFailure(it, err)
	}
	f := o.judgeStatus(it, resp)
	f.came = o.cfg.Now()
	return f
}

func (o *outcomes) judgeStatus(it *item.Item, resp *page.Response) visitOutcome {
	more := int(it.Tries) < o.limits.mostTries(it.URL)
	switch s := resp.Status; {
	case s == http.StatusTooManyRequests:
		more = int(it.Tries) < max(o.limits.mostTries(it.URL), maxThrottles)
		return visitOutcome{again: more, late: true, outcome: frontier.Throttled, ask: resp.RetryAfter(o.cfg.Now())}
	case s == http.StatusServiceUnavailable:
		return visitOutcome{again: more, late: true, outcome: frontier.Throttled, ask: resp.RetryAfter(o.cfg.Now())}
	case s == http.StatusRequestTimeout, s == http.StatusInternalServerError, s == http.StatusBadGateway,
		s == http.StatusGatewayTimeout, resp.Truncated == page.Disconnect:
		return visitOutcome{again: more, late: true, outcome: frontier.Answered}
	}
	return visitOutcome{outcome: frontier.Answered}
}

func (o *outcomes) judgeFailure(it *item.Item, err error) visitOutcome {
	if canceled(err) {
		it.Tries--
		return visitOutcome{again: true, outcome: frontier.NoRequest}
	}
	f := visitOutcome{outcome: frontier.Failed, failure: page.Internal, detail: err.Error()}
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		f.failure, f.own = fe.Failure, fe.OfLine()
	}
	if f.failure == page.Private {
		f.outcome = frontier.NoRequest
		return f
	}
	f.again = int(it.Tries) < o.limits.mostTries(it.URL)
	f.late = !f.failure.OfHost()
	return f
}

// retry ends a visit whose URL waits again.
func (w *worker) retry(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	w.giveBack(v)
	if f.outcome != frontier.NoRequest {
		rec.Failure, rec.Detail = f.failure, f.detail
		w.visits.batches.stats.Retried(w.answer.resp.RawLen())
		w.visits.listener.retried(rec, f.ask)
	}
	v.Late = f.late
	return w.done(v, f, v.Item)
}

// excuse keeps what is not a host's fault from being counted against it: where this machine had no socket, where the
// crawl may be cut off, and for some time where a host had answered before.
func (o *outcomes) excuse(v *frontier.Visit, f visitOutcome) visitOutcome {
	o.attempts.note(o.cfg.Now(), f)
	if f.failure == page.Local {
		o.line.reportScarce(f.detail)
		return f.forgiven(v, frontier.NoRequest) // who dials has waited already
	}
	by, ofLine := outage.WayOf(f.failure)
	if !ofLine || f.outcome != frontier.Failed {
		return f
	}
	origin := originOf(v.URL)
	s := o.origins.healthOf(origin)
	m := &outage.Miss{At: o.cfg.Now(), Origin: o.line.origin(origin, o.origins.hash(origin)), By: by, Own: f.own,
		Had: s.answered, Why: f.detail}
	first, last := m.At, m.At // failures in a row
	if s.since != 0 {
		first, last = o.origins.at(s.since), o.origins.at(s.last)
	}
	if wait, off := o.line.failed(m); off {
		f = f.forgiven(v, frontier.NoRequest)
		f.wait = wait
		return f
	}
	switch {
	case f.own:
		return f.forgiven(v, frontier.Failed)
	case !f.failure.OfHost():
	case s.answered && m.At.Sub(first) < o.cfg.Patience:
		return f.forgiven(v, frontier.Failed)
	case (!f.again || s.refusals+1 >= maxRefusals) && !o.line.proven(m, last):
		return f.forgiven(v, frontier.Failed)
	}
	return f
}

// forgiven is a fate without consequences: the URL waits again, and the visit was none of those that it may have.
func (f visitOutcome) forgiven(v *frontier.Visit, outcome frontier.Outcome) visitOutcome {
	v.Tries--
	f.again, f.late, f.excused, f.outcome = true, false, true, outcome
	return f
}
