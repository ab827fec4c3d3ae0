package crawl

import (
	"errors"
	"net/http"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/content/fetch"
	"kumo/internal/state/frontier"
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

// judgeAnswer decides what follows from an exchange, it.Tries counting it already.
func (w *worker) judgeAnswer(it *item.Item, err error) visitOutcome {
	if err != nil {
		return w.judgeFailure(it, err)
	}
	f := w.judgeStatus(it)
	f.came = w.cfg.Now()
	return f
}

func (w *worker) judgeStatus(it *item.Item) visitOutcome {
	more := int(it.Tries) < w.mostTries(it.URL)
	switch s := w.resp.Status; {
	case s == http.StatusTooManyRequests:
		more = int(it.Tries) < max(w.mostTries(it.URL), maxThrottles)
		return visitOutcome{again: more, late: true, outcome: frontier.Throttled, ask: w.resp.RetryAfter(w.cfg.Now())}
	case s == http.StatusServiceUnavailable:
		return visitOutcome{again: more, late: true, outcome: frontier.Throttled, ask: w.resp.RetryAfter(w.cfg.Now())}
	case s == http.StatusRequestTimeout, s == http.StatusInternalServerError, s == http.StatusBadGateway,
		s == http.StatusGatewayTimeout, w.resp.Truncated == page.Disconnect:
		return visitOutcome{again: more, late: true, outcome: frontier.Answered}
	}
	return visitOutcome{outcome: frontier.Answered}
}

func (w *worker) judgeFailure(it *item.Item, err error) visitOutcome {
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
	f.again = int(it.Tries) < w.mostTries(it.URL)
	f.late = !f.failure.OfHost()
	return f
}

// retry ends a visit whose URL waits again.
func (w *worker) retry(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	w.giveBack(v)
	if f.outcome != frontier.NoRequest {
		rec.Failure, rec.Detail = f.failure, f.detail
		w.stats.Retried(w.resp.RawLen())
		w.listener.retried(rec, f.ask)
	}
	v.Late = f.late
	return w.done(v, f, v.Item)
}
