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

// OverrideKey is the setting that has what some hosts and URLs have in place of others.
const OverrideKey = "override"

// proxySets are the proxies of overrides, by what these name.
type proxySets map[string]*fetch.ProxySet

// overrideState is what is made of the overrides of a crawl that are in force.
type overrideState struct{ sets atomic.Pointer[proxySets] }

// SetOverrides puts overrides in force, or says what is wrong with them. It is called before the crawl is opened.
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
			return advice.Usage("--%s: match %s: proxy: none, or a URL such as http://HOST:PORT or socks5://HOST:PORT is wanted",
				OverrideKey, o.Name) // which may hold a password, and is not repeated
		}
		sets[key(o.Proxies)] = set
	}
	j.overriding = &overrideState{}
	j.overriding.sets.Store(&sets)
	j.Crawl.Overrides = policy.NewOverrides(all)
	return nil
}

// ApplyOverrides puts those of another job in force, in a crawl that runs.
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

// OverrideTexts are the overrides in force, without secrets.
func (j *Job) OverrideTexts() (texts []string) {
	for _, o := range j.Crawl.Overrides.All() {
		texts = append(texts, RedactOverride(o))
	}
	return texts
}

// RedactOverride is an override's text without secrets.
func RedactOverride(o *policy.Override) string { return o.Redact(fetch.IsSecret, settings.Redacted) }

// proxiesOf are those that a host has of its own; nil for none.
func (j *Job) proxiesOf(host string) *fetch.ProxySet {
	own := j.Crawl.Overrides.ForHost(host).Proxies
	if own == nil {
		return nil
	}
	return (*j.overriding.sets.Load())[key(own)]
}

// HostConfig is what the frontier is to know of a host's overrides.
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

// CheckLive says which of some overrides cannot come into force while the job runs.
func (j *Job) CheckLive(all []*policy.Override) error {
	k := policy.Tracked{Scope: weburl.NewScope(j.Scope, j.Crawl.Overrides.Scopes()...), Depth: j.Crawl.BoundsDepth(),
		Pages:   j.Crawl.PagesPerHost > 0 || j.Crawl.Overrides.LimitsPages(),
		Bytes:   j.Crawl.BytesPerHost > 0 || j.Crawl.Overrides.LimitsBytes(),
		Recrawl: j.Crawl.Recrawl.Enabled(), PerHost: max(j.maxPerHost(), j.Frontier.Slices)}
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
