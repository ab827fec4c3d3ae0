package crawl

import (
	"context"
	"errors"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/content/fetch"
	"kumo/internal/engine/visit"
	"kumo/internal/state/frontier"
)

// ruleLogin is the rule in skipped.jsonl of URLs that require a login right after a login.
const ruleLogin = "login"

// logIn makes sure that a session exists for the visit's host if the user has configured a login. If the login fails,
// the host is abandoned: nothing is fetched there without it. If it returns false, the visit is over.
func (w *worker) logIn(ctx context.Context, v *frontier.Visit, u weburl.URL) (bool, error) {
	w.session = 0
	host := cookies.HostOf(u.Host())
	if !w.visits.logins.Has(host) {
		return true, nil
	}
	if wait, off := w.visits.outcomes.outages.suspected(); off &&
		!w.visits.logins.IsReady(host) { // a failed login is not repeated
		w.returnQuota(v)
		w.visits.frontier.Postpone(v, wait)
		return false, nil
	}
	number, err := w.visits.logins.EnsureLogin(ctx, host)
	if err == nil {
		w.session = number
		return true, nil
	}
	w.returnQuota(v)
	if ctx.Err() != nil {
		w.visits.frontier.Postpone(v, 0)
		return false, nil
	}
	l := visit.Abandonment{Failure: page.Login, Why: err.Error()}
	if err := w.failVisit(v, l); err != nil {
		return false, err
	}
	if err := w.done(v, visitOutcome{}); err != nil {
		return false, err
	}
	return false, w.visits.abandons.abandonOrigin(u.Origin(), l)
}

// isLoggedOut reports whether an answer shows that the visit's session has expired.
func (w *worker) isLoggedOut(u weburl.URL) (bool, error) {
	if w.session == 0 {
		return false, nil
	}
	host := cookies.HostOf(u.Host())
	if w.visits.logins.NeedsText(host) {
		w.answer.acquireSlot()
		if err := w.answer.decoder.Decode(&w.answer.resp, w.answer.room); errors.Is(err, fetch.ErrDisk) {
			return false, err
		}
	}
	return w.visits.logins.CheckExpired(host, w.session, u, &w.answer.resp), nil
}

// retryLogin ends a visit whose session had expired. The retry logs in again. If the URL still requires a login after
// all tries, it is filtered.
func (w *worker) retryLogin(v *frontier.Visit, rec *page.Record, f visitOutcome) error {
	if int(v.Tries) < w.visits.limits.maxTries(v.URL) {
		f.Again = true
		return w.retry(v, rec, f)
	}
	w.returnQuota(v)
	return w.skip(v, ruleLogin, "answered as logged out, also after another login")
}
