package fetch

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// A ProxyRule names a proxy for a domain and its subdomains.
type ProxyRule struct {
	Domain string   // lower case; "": all hosts without another rule
	URL    *url.URL // nil: no proxy
}

// A ProxySet is a list of proxies for some hosts. An empty set means no proxy.
type ProxySet struct{ all []*proxy }

// NewProxySet returns a set of proxies. Several clients may use it, one after the other.
func NewProxySet(urls ...*url.URL) (*ProxySet, error) {
	s := &ProxySet{}
	for _, u := range urls {
		one, err := newProxy(u)
		if err != nil {
			return nil, err
		}
		s.all = append(s.all, one)
	}
	return s, nil
}

// proxies select the proxy for a target. If a domain has several, each host uses one of them, by a hash of its name. A
// failed proxy is excluded for a while; only its hosts move to other proxies.
type proxies struct {
	byDomain    map[string][]*proxy // an empty list: no proxy
	hostProxies func(host string) *ProxySet
	now         func() time.Time
	onChange    func(proxy string, err error) // nil: no callback
	seed        maphash.Seed

	forHTTP, forHTTPS *proxy // from the environment; nil: none
	// environmentProxy returns the proxy URL for a request URL, nil for a direct connection. It decides whether forHTTP
	// or forHTTPS applies.
	environmentProxy func(*url.URL) (*url.URL, error)
}

const (
	minBackoff = 10 * time.Second // exclusion of a proxy after its first failure
	maxBackoff = 10 * time.Minute
)

// A health records whether a proxy is excluded.
type health struct {
	mu      sync.Mutex // guards all fields
	backoff time.Duration
	until   time.Time // end of the exclusion; zero: working, as far as is known
}

// excludedUntil returns the end of a proxy's exclusion; zero if it is not excluded.
func (h *health) excludedUntil(now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.until) {
		return h.until
	}
	return time.Time{}
}

// markFailed excludes the proxy, each time for longer. It reports whether this is the first failure since
// the proxy last worked.
func (h *health) markFailed(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.until) {
		return false // the attempt began before the exclusion
	}
	first := h.backoff == 0
	h.backoff = min(max(2*h.backoff, minBackoff), maxBackoff)
	h.until = now.Add(h.backoff)
	return first
}

// markWorking ends the exclusion. It reports whether the proxy had failed before.
func (h *health) markWorking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.backoff > 0
	h.backoff, h.until = 0, time.Time{}
	return news
}

// CheckProxies returns an error if a proxy in the environment is not valid.
func CheckProxies(env *httpproxy.Config) error {
	return (&proxies{}).setEnvironment(env)
}

func newProxies(cfg Config) (*proxies, error) {
	p := &proxies{
		byDomain:    make(map[string][]*proxy),
		now:         cfg.Now,
		hostProxies: cfg.HostProxies,
		onChange:    cfg.OnProxyChange,
		seed:        maphash.MakeSeed(),
	}
	rules := cfg.Proxies
	if cfg.Proxy != nil {
		rules = append([]ProxyRule{{URL: cfg.Proxy}}, rules...)
	}
	for _, r := range rules {
		one, err := newProxy(r.URL)
		if err != nil {
			return nil, err
		}
		all := p.byDomain[r.Domain]
		if one != nil {
			all = append(all, one)
		}
		p.byDomain[r.Domain] = all
	}
	if len(rules) > 0 || cfg.Environment == nil {
		return p, nil
	}
	return p, p.setEnvironment(cfg.Environment)
}

func (p *proxies) setEnvironment(env *httpproxy.Config) (err error) {
	if p.forHTTP, err = parseProxy("HTTP_PROXY", env.HTTPProxy); err != nil {
		return err
	}
	if p.forHTTPS, err = parseProxy("HTTPS_PROXY", env.HTTPSProxy); err != nil {
		return err
	}
	if p.forHTTP != nil || p.forHTTPS != nil {
		p.environmentProxy = env.ProxyFunc()
	}
	return nil
}

// parseProxy parses a proxy from the environment: a URL, or the host and port of an HTTP proxy. Errors do not contain
// the value, which may include a password.
func parseProxy(variable, value string) (*proxy, error) {
	if value == "" {
		return nil, nil
	}
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	if u, err := url.Parse(value); err == nil {
		if p, err := newProxy(u); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s in the environment: a URL such as http://HOST:PORT or socks5://HOST:PORT is wanted",
		variable)
}

// forTarget returns the proxy for t; nil for none.
func (p *proxies) forTarget(t target) *proxy {
	if own := p.fromHostProxies(t); own != nil {
		return p.pick(own.all, t.hostname)
	}
	if p.environmentProxy != nil {
		return p.fromEnvironment(t)
	}
	if len(p.byDomain) == 0 {
		return nil
	}
	return p.pick(p.forDomain(t.hostname), t.hostname)
}

func (p *proxies) fromHostProxies(t target) *ProxySet {
	if p.hostProxies == nil {
		return nil
	}
	return p.hostProxies(t.host)
}

func (p *proxies) fromEnvironment(t target) *proxy {
	chosen := p.forHTTP
	if t.scheme == "https" {
		chosen = p.forHTTPS
	}
	if chosen == nil {
		return nil
	}
	if u, err := p.environmentProxy(&url.URL{Scheme: t.scheme, Host: t.host}); u == nil || err != nil {
		return nil
	}
	return chosen
}

// forDomain returns the proxies of the longest domain that contains a host.
func (p *proxies) forDomain(hostname string) []*proxy {
	for domain := strings.TrimSuffix(hostname, "."); domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if all, ok := p.byDomain[domain]; ok {
			return all
		}
	}
	return p.byDomain[""]
}

// pick returns the first working proxy in a host's order. If none works, it returns the one whose exclusion ends first,
// so that the request fails with its actual error.
func (p *proxies) pick(all []*proxy, hostname string) *proxy {
	if len(all) < 2 {
		if len(all) == 0 {
			return nil
		}
		return all[0]
	}
	now := p.now()
	host := maphash.String(p.seed, hostname)
	return slices.MinFunc(all, func(a, b *proxy) int {
		return cmp.Or(a.health.excludedUntil(now).Compare(b.health.excludedUntil(now)),
			cmp.Compare(p.score(host, a), p.score(host, b)))
	})
}

// score is a proxy's rank for a host, by rendezvous hashing: it does not depend on the other proxies.
func (p *proxies) score(host uint64, one *proxy) uint64 {
	return maphash.Comparable(p.seed, struct {
		host uint64
		name string
	}{host, one.name})
}

// alternative returns another working proxy for t after a failure with err. It returns nil if there is none, or if the
// failure was not the proxy's.
func (p *proxies) alternative(t target, err error) *proxy {
	failed := t.proxy
	if !p.markFailed(t, err) {
		return nil
	}
	if next := p.forTarget(t); next != nil && next != failed && next.health.excludedUntil(p.now()).IsZero() {
		return next
	}
	return nil
}

// markFailed marks the proxy of t as failed, if err is the proxy's and there are others. It reports whether it did.
func (p *proxies) markFailed(t target, err error) bool {
	all := p.forDomain(t.hostname)
	if own := p.fromHostProxies(t); own != nil {
		all = own.all
	} else if p.environmentProxy != nil {
		return false
	}
	e, is := errors.AsType[*Error](err)
	if t.proxy == nil || len(all) < 2 || !(is && e.Op == proxyOp || errors.Is(err, errProxyAuth)) {
		return false
	}
	if t.proxy.health.markFailed(p.now()) && p.onChange != nil {
		p.onChange(t.proxy.name, err)
	}
	return true
}

func (p *proxies) markWorking(one *proxy) {
	if one != nil && one.health.markWorking() && p.onChange != nil {
		p.onChange(one.name, nil)
	}
}

// forHost returns the proxy for a host by https or, failing that, http; nil for none.
func (p *proxies) forHost(hostname, host string) *proxy {
	if found := p.forTarget(target{scheme: "https", host: host, hostname: hostname}); found != nil {
		return found
	}
	return p.forTarget(target{scheme: "http", host: host, hostname: hostname})
}

func (p *proxies) hasAny() bool { return len(p.byDomain) > 0 || p.environmentProxy != nil }
