package crawl

import (
	"net/http"
	"sync"

	"kumo/internal/base/bounded"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
)

// Sites redirect to set a cookie: a URL to itself, or to another that leads back. It has been fetched then, and would
// be dropped as known; but what it says to who has the cookie is not known. So it is asked for once more, each time a
// cookie has changed that goes there, and as often as redirects may follow one another.

// hops are the URLs that have redirected lately.
type hops struct {
	jar *cookies.Jar // nil where no cookies are kept

	mu        sync.Mutex                      // guards asked
	requested *bounded.Recent[string, uint64] // of each, the jar's stamp when it was asked for
}

// maxHops is how many are known. One that is forgotten is not asked for again.
const maxHops = 1 << 12

// hop records when a URL was asked for that redirects to another, and returns when that one was.
func (h *hops) record(from string, asked uint64, to string) (stamp uint64, met bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requested.Put(from, asked)
	return h.requested.Get(to)
}

// A hop is what a redirect means to a crawl with cookies.
type redirectUse int

const (
	followRedirect redirectUse = iota // what it leads to is a link like others
	repeatURL                         // the same URL has another answer by now
	repeatSource                      // so has one that led here
)

// newHops makes hops of a jar, to which it adds the cookies of earlier runs. The journal gets those that change.
func newHops(jar, earlier *cookies.Jar, log *ledger.Ledger) *hops {
	h := &hops{jar: jar, requested: bounded.NewRecent[string, uint64](maxHops)}
	if jar == nil {
		return h
	}
	jar.ImportAll(earlier.AppendAll(nil))
	jar.SetOnChange(func(c *cookies.Cookie) {
		var enc entry.Encoder
		enc.Cookie(c)
		_ = log.Within(func() error { log.Enqueue(enc.Writer); return nil }) // the next commit returns its error
	})
	return h
}

// Cookies are how many cookies are kept, and how many this run has dropped for want of room.
func (e *Engine) Cookies() (kept, evicted int64) {
	jar := e.runner.visits.hops.jar
	return jar.Len(), jar.Evicted()
}

// classifyRedirect says what the visit's redirect means; asked is the jar's stamp from before the request. Where links are
// claimed, other nodes have been told that what led here is done.
func (w *worker) classifyRedirect(v *frontier.Visit, u weburl.URL, asked uint64) (redirectUse, weburl.URL) {
	if w.visits.hops.jar == nil || w.answer.resp.Status/100 != 3 || w.answer.resp.Status == http.StatusNotModified ||
		int(v.Redirects) >= w.visits.cfg.MaxRedirects {
		return followRedirect, u
	}
	to, err := u.Resolve(w.answer.resp.Header.Get("Location"))
	if err != nil || !to.IsHTTP() {
		return followRedirect, u
	}
	to = to.Canonical()
	url := to.String()
	since, met := w.visits.hops.record(v.URL, asked, url)
	t := cookies.Target{Secure: to.Scheme() == "https", Host: cookies.HostOf(to.Host()), Path: to.RequestURI()}
	switch {
	case !met || w.visits.hops.jar.Revision(t, w.visits.cfg.Now()) <= since:
		return followRedirect, u
	case url == v.URL:
		return repeatURL, u
	case v.Redirects == 0 || w.visits.claims != nil:
		return followRedirect, u
	}
	return repeatSource, to
}

// repeatVisit ends a visit whose URL is asked for again at once: nothing but a cookie came of it, and no record is kept.
func (w *worker) repeatVisit(v *frontier.Visit, f visitOutcome) error {
	w.returnQuota(v)
	w.visits.batches.stats.Retried(w.answer.resp.RawLen())
	v.Tries--
	v.Redirects++
	return w.done(v, f, v.Item)
}
