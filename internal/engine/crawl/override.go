package crawl

import (
	"net/http"

	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
)

// override makes a request what the URL's overrides want.
func (w *worker) override(req *fetch.Request, u weburl.URL) {
	if len(w.visits.cfg.Overrides.All()) == 0 {
		return
	}
	own, host := w.visits.cfg.Overrides.ForURL(u), w.visits.cfg.Overrides.ForHost(u.Host())
	if own.MaxBody != nil {
		req.MaxBody = *own.MaxBody
	}
	if own.Header == nil && host.UserAgent == nil {
		return
	}
	req.Header = w.visits.header(req.Trusted)
	if host.UserAgent != nil {
		req.Header.Set("User-Agent", *host.UserAgent)
	}
	for name, values := range own.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
}

// CheckOverrides says which of some overrides cannot come into force while the crawl runs; perHost is how many
// connections a host may have at most.
func (e *Engine) CheckOverrides(all []*policy.Override, perHost int) error {
	k := policy.Tracked{
		Scope:   e.Inspector.rules.Scope,
		Depth:   e.known.depths,
		Pages:   e.limits.quota.CountsPages(),
		Bytes:   e.limits.quota.CountsBytes(),
		Recrawl: e.cfg.Recrawl.Enabled(),
		PerHost: perHost,
	}
	return k.CheckRuntime(all)
}
