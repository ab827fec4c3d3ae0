package crawl

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"kumo/internal/fetch"
	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/stats"
)

// A fate is what follows from one exchange.
type fate struct {
	again   bool             // the URL waits again
	late    bool             // after the host's other URLs, as it may be at fault alone
	outcome frontier.Outcome // for the host
	ask     time.Duration    // Retry-After
	failure page.Failure
	detail  string
}

// judgeAnswer decides what follows from an exchange, it.Tries counting it already.
func (w *worker) judgeAnswer(it *frontier.Item, err error) fate {
	if err != nil {
		return w.judgeFailure(it, err)
	}
	more := int(it.Tries) < w.cfg.Tries
	switch s := w.resp.Status; {
	case s == http.StatusTooManyRequests:
		return fate{again: true, outcome: frontier.Throttled, ask: w.retryAfter()}
	case s == http.StatusServiceUnavailable:
		return fate{again: more, late: true, outcome: frontier.Throttled, ask: w.retryAfter()}
	case s == http.StatusRequestTimeout, s == http.StatusInternalServerError, s == http.StatusBadGateway,
		s == http.StatusGatewayTimeout, w.resp.Truncated == page.Disconnect:
		return fate{again: more, late: true, outcome: frontier.Answered}
	}
	return fate{outcome: frontier.Answered}
}

func (w *worker) judgeFailure(it *frontier.Item, err error) fate {
	if canceled(err) {
		it.Tries--
		return fate{again: true, outcome: frontier.NoRequest}
	}
	f := fate{outcome: frontier.Failed, failure: page.Internal, detail: err.Error()}
	if fe, ok := errors.AsType[*fetch.Error](err); ok {
		f.failure = fe.Failure
	}
	if f.failure == page.Private {
		f.outcome = frontier.NoRequest
		return f
	}
	f.again = int(it.Tries) < w.cfg.Tries
	f.late = !f.failure.OfHost()
	return f
}

// retryAfter reads the field's two forms: seconds, or a date. 0 if there is none.
func (w *worker) retryAfter() time.Duration {
	v := strings.TrimSpace(w.resp.Header.Get("Retry-After"))
	if secs, err := strconv.ParseInt(v, 10, 32); err == nil {
		return max(0, time.Duration(secs)*time.Second)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(w.cfg.Now()))
	}
	return 0
}

// retry ends a visit whose URL waits again.
func (w *worker) retry(v *frontier.Visit, rec *page.Record, f fate) error {
	w.giveBack(v)
	if f.outcome != frontier.NoRequest {
		rec.Failure, rec.Detail = f.failure, f.detail
		w.stats.Retried()
		w.listener.retried(rec, f.ask)
	}
	if f.outcome == frontier.Throttled {
		w.listener.slowed(v.Host, w.resp.Status, f.ask)
	}
	v.Late = f.late
	return w.done(v, f, v.Item)
}

// giveUp ends what waits at a host that failed too often: its URLs share the last failure.
func (w *worker) giveUp(host string, f fate) error {
	failure, why := f.failure, f.detail
	if failure == page.None {
		failure, why = page.Unreachable, "its host asked to be left alone too often"
	}
	items := w.frontier.Drop(host)
	w.mu.Lock()
	w.lost[host] = lost{failure, why}
	w.mu.Unlock()
	w.listener.gaveUp(host, fmt.Sprintf("%s: %s", failure, why))
	for _, it := range items {
		if err := w.forsake(host, it); err != nil {
			return err
		}
	}
	return nil
}

// lost is why a host was given up.
type lost struct {
	failure page.Failure
	why     string
}

// forsake records a URL as failed that is not tried (again), because its host was given up.
func (e *Engine) forsake(host string, it frontier.Item) error {
	e.mu.Lock()
	l := e.lost[host]
	e.mu.Unlock()
	rec := &page.Record{URL: it.URL, Final: it.URL, From: it.From, Seed: it.Seed, Path: it.Path, Depth: int(it.Depth),
		Time: e.cfg.Now(), Tries: int(it.Tries), Failure: l.failure, Detail: l.why}
	d := &done{url: it.URL, visit: stats.Visit{Host: host, Failure: string(l.failure)}}
	b := batch{skips: []page.Skip{{URL: it.URL, Host: host, From: it.From, Depth: int(it.Depth), Time: rec.Time,
		Rule: "failed", Why: string(l.failure) + ": " + l.why}}}
	if err := e.take(&b, rec, d); err != nil {
		return err
	}
	e.stats.Visited(d.visit)
	e.listener.visited(rec)
	return nil
}
