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

// Sites redirect to set a cookie: from a URL to itself, or to another that leads back. The URL was fetched then, and
// would be dropped as known, although its answer with the cookie is not known yet. So it is requested again each time
// that a cookie of it has changed, up to the limit of consecutive redirects.

// hops has the latest URLs that have redirected.
type hops struct {
	jar *cookies.Jar // nil: cookies are not kept

	mu        sync.Mutex                      // guards requested
	requested *bounded.Recent[string, uint64] // by URL: the jar's stamp when it was requested
}

// maxHops bounds requested. A forgotten URL is not requested again.
const maxHops = 1 << 12

// record records when a URL that redirects was requested, and returns when its target was.
func (h *hops) record(from string, asked uint64, to string) (stamp uint64, met bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requested.Put(from, asked)
	return h.requested.Get(to)
}

// A redirectUse is what a crawl with cookies does with a redirect.
type redirectUse int

const (
	followRedirect redirectUse = iota // its target is an ordinary link
	repeatURL                         // request the same URL again: its answer depends on the new cookie
	repeatSource                      // request the target again: it redirected here before the cookie was set
)

// newHops returns hops for a jar, to which it adds the cookies of earlier runs. Changed cookies are written to the
// journal.
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

// Cookies returns the number of cookies in the jar, and how many this run has evicted.
func (e *Engine) Cookies() (kept, evicted int64) {
	jar := e.runner.visits.hops.jar
	return jar.Len(), jar.Evicted()
}

// classifyRedirect decides what follows from the visit's redirect; asked is the jar's stamp from before the request.
// Where links are claimed, the source of the redirect was already reported as finished, so it is not repeated.
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

// repeatVisit ends a visit whose URL is requested again at once. Its answer only set a cookie, so no record is stored.
func (w *worker) repeatVisit(v *frontier.Visit, f visitOutcome) error {
	w.returnQuota(v)
	w.visits.batches.stats.Retried(w.answer.resp.RawLen())
	v.Tries--
	v.Redirects++
	return w.done(v, f, v.Item)
}
