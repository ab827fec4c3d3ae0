package crawl

import (
	"net/http"

	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
)

// override applies the URL's overrides to a request.
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

// CheckOverrides returns an error if one of the overrides cannot take effect while the crawl runs; perHost is the limit
// of connections to a host.
func (e *Engine) CheckOverrides(all []*policy.Override, perHost int) error {
	k := policy.Tracked{
		Scope:   e.Inspector.rules.Scope,
		Depth:   e.known.depths,
		Pages:   e.limits.quota.CountsPages(),
		Bytes:   e.limits.quota.CountsBytes(),
		Recrawl: e.cfg.Recrawl.Enabled(),
		PerHost: perHost,
		Renders: e.runner.visits.renderings != nil,
	}
	return k.CheckRuntime(all)
}
