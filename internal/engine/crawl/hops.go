package crawl

import (
	"net/http"
	"sync"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
	"kumo/internal/content/cookies"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
)

// Sites redirect to set a cookie: a URL to itself, or to another that leads back. It has been fetched then, and would
// be dropped as known; but what it says to who has the cookie is not known. So it is asked for once more, each time a
// cookie has changed that goes there, and as often as redirects may follow one another.

// hops are the URLs that have redirected lately.
type hops struct {
	mu    sync.Mutex                      // guards asked
	asked *bounded.Recent[string, uint64] // of each, the jar's stamp when it was asked for
}

// maxHops is how many are known. One that is forgotten is not asked for again.
const maxHops = 1 << 12

func newHops() *hops { return &hops{asked: bounded.NewRecent[string, uint64](maxHops)} }

func (h *hops) note(url string, stamp uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked.Put(url, stamp)
}

func (h *hops) of(url string) (stamp uint64, met bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.asked.Get(url)
}

// A hop is what a redirect means to a crawl with cookies.
type hop int

const (
	onward hop = iota // what it leads to is a link like others
	again             // the same URL has another answer by now
	back              // so has one that led here
)

// takeCookies goes on with the cookies that earlier runs were given.
func (e *Engine) takeCookies(jar, earlier *cookies.Jar) {
	if jar == nil {
		return
	}
	e.cookies, e.hops = jar, newHops()
	jar.ImportAll(earlier.AppendAll(nil))
	jar.Tell(func(c *cookies.Cookie) {
		var enc entry.Encoder
		enc.Cookie(c)
		_ = e.ledger.Within(func() error { e.ledger.Enqueue(enc.Writer); return nil }) // what fails, the next commit says
	})
}

// Cookies are how many cookies are kept, and how many this run has dropped for want of room.
func (e *Engine) Cookies() (kept, evicted int64) { return e.cookies.Len(), e.cookies.Evicted() }

// followCookie says what the visit's redirect means; asked is the jar's stamp from before the request. Where links are
// claimed, other nodes have been told that what led here is done.
func (w *worker) followCookie(v *frontier.Visit, u weburl.URL, asked uint64) (hop, weburl.URL) {
	if w.hops == nil || w.resp.Status/100 != 3 || w.resp.Status == http.StatusNotModified ||
		int(v.Redirects) >= w.cfg.MaxRedirects {
		return onward, u
	}
	to, err := u.Resolve(w.resp.Header.Get("Location"))
	if err != nil || !to.Web() {
		return onward, u
	}
	to = to.Canonical()
	url := to.String()
	w.hops.note(v.URL, asked)
	since, met := w.hops.of(url)
	t := cookies.Target{Secure: to.Scheme() == "https", Host: cookies.HostOf(to.Host()), Path: to.RequestURI()}
	switch {
	case !met || w.cookies.Stamp(t, w.cfg.Now()) <= since:
		return onward, u
	case url == v.URL:
		return again, u
	case v.Redirects == 0 || w.claims != nil:
		return onward, u
	}
	return back, to
}

// askAgain ends a visit whose URL is asked for again at once: nothing but a cookie came of it, and no record is kept.
func (w *worker) askAgain(v *frontier.Visit, f visitOutcome) error {
	w.giveBack(v)
	w.stats.Retried(w.resp.RawLen())
	v.Tries--
	v.Redirects++
	return w.done(v, f, v.Item)
}

// hopBack is the item of a URL that is asked for once more, as the visit leads back to it.
func (w *worker) hopBack(v *frontier.Visit, to weburl.URL) item.Item {
	it := child(&v.Item, &page.Link{URL: to.String(), Kind: page.Redirect})
	it.URL = to.String()
	return it
}

// takeAgain takes in what is to be fetched once more, whatever seen says.
func (e *Engine) takeAgain(b *batch) {
	for _, it := range b.again {
		c := entry.Candidate{Host: it.Host(), Item: it}
		if e.peers.router == nil || e.ours(e.sliceOf(&c)) {
			e.route(b, &c)
		}
	}
}
