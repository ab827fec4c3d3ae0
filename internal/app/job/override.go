package job

import (
	"net/url"
	"slices"
	"sync/atomic"

	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
	"kumo/internal/content/policy"
	"kumo/internal/state/frontier"
)

// OverrideKey is the setting that overrides others for some hosts and URLs.
const OverrideKey = "override"

// proxySets maps the proxies named in overrides to their implementation.
type proxySets map[string]*fetch.ProxySet

// overrideState is derived from a crawl's overrides in effect.
type overrideState struct{ sets atomic.Pointer[proxySets] }

// SetOverrides validates overrides and puts them into effect. Call it before the crawl is opened.
func (j *Job) SetOverrides(all []*policy.Override) error {
	sets := proxySets{}
	for _, o := range all {
		for name, values := range o.Header {
			for _, value := range values {
				if err := fetch.CheckField(name, value); err != nil {
					return advice.Usage("--%s: match %s: header %s: %w", OverrideKey, o.Name, name, err)
				}
			}
		}
		if o.Proxies == nil {
			continue
		}
		set, err := proxySet(o.Proxies)
		if err != nil {
			return advice.Usage("--%s: match %s: proxy: give none, or a URL such as http://HOST:PORT or socks5://HOST:PORT",
				OverrideKey, o.Name) // not the value, which may contain a password
		}
		sets[key(o.Proxies)] = set
	}
	j.overriding = &overrideState{}
	j.overriding.sets.Store(&sets)
	j.Crawl.Overrides = policy.NewOverrides(all)
	return nil
}

// ApplyOverrides puts the overrides of another job into effect in a running crawl.
func (j *Job) ApplyOverrides(from *Job) {
	if j == from || j.overriding == nil || from.overriding == nil {
		return
	}
	j.overriding.sets.Store(from.overriding.sets.Load())
	j.Crawl.Overrides.Set(from.Crawl.Overrides.All())
}

func key(proxies []string) string {
	k := ""
	for _, p := range proxies {
		k += p + "\n"
	}
	return k
}

func proxySet(proxies []string) (*fetch.ProxySet, error) {
	if slices.Equal(proxies, []string{"none"}) {
		return fetch.NewProxySet()
	}
	var urls []*url.URL
	for _, p := range proxies {
		u, err := url.Parse(p)
		if err != nil {
			return nil, err
		}
		urls = append(urls, u)
	}
	return fetch.NewProxySet(urls...)
}

// OverrideTexts returns the overrides in effect, without secrets.
func (j *Job) OverrideTexts() (texts []string) {
	for _, o := range j.Crawl.Overrides.All() {
		texts = append(texts, RedactOverride(o))
	}
	return texts
}

// RedactOverride returns the text of an override without secrets.
func RedactOverride(o *policy.Override) string { return o.Redact(fetch.IsSecret, settings.Redacted) }

// proxiesOf returns the overriding proxies of a host; nil if there are none.
func (j *Job) proxiesOf(host string) *fetch.ProxySet {
	own := j.Crawl.Overrides.ForHost(host).Proxies
	if own == nil {
		return nil
	}
	return (*j.overriding.sets.Load())[key(own)]
}

// HostConfig returns a host's overrides for the frontier.
func (j *Job) HostConfig(host string) (c frontier.HostConfig) {
	own := j.Crawl.Overrides.ForHost(host)
	if own.Delay != nil {
		c.HasDelay, c.Delay = true, *own.Delay
	}
	if own.PerHost != nil {
		c.PerHost = *own.PerHost
	}
	return c
}

// CheckLive returns an error if an override cannot take effect during the run.
func (j *Job) CheckLive(all []*policy.Override) error {
	k := policy.Tracked{Scope: weburl.NewScope(j.Scope, j.Crawl.Overrides.Scopes()...), Depth: j.Crawl.BoundsDepth(),
		Pages:   j.Crawl.PagesPerHost > 0 || j.Crawl.Overrides.LimitsPages(),
		Bytes:   j.Crawl.BytesPerHost > 0 || j.Crawl.Overrides.LimitsBytes(),
		Recrawl: j.Crawl.Recrawl.Enabled(), PerHost: max(j.maxPerHost(), j.Frontier.Slices), Renders: j.Renderer != nil}
	return k.CheckRuntime(all)
}

func (j *Job) maxPerHost() int {
	most := j.perHost()
	for _, o := range j.Crawl.Overrides.All() {
		if o.PerHost != nil {
			most = max(most, *o.PerHost)
		}
	}
	return most
}
