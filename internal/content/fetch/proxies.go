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
	Domain string   // lower case; "" for all that no other rule names
	URL    *url.URL // nil: these go without a proxy
}

// A ProxySet are proxies that some hosts go through; none: these go through none.
type ProxySet struct{ all []*proxy }

// NewProxySet makes a set of proxies. Several clients may have it, one after the other.
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

// proxies say which proxy a target is reached through. Of several for a domain each host keeps to one, by a hash of its
// name; one that fails is left out for a while, and only its hosts go to others.
type proxies struct {
	byDomain    map[string][]*proxy // empty: without a proxy
	hostProxies func(host string) *ProxySet
	now         func() time.Time
	onChange    func(proxy string, err error) // nil: nobody is told
	seed        maphash.Seed

	forHTTP, forHTTPS *proxy // of the environment; nil: none
	// environmentProxy reports through which URL a request goes, or nil: what of the two holds for a target
	environmentProxy func(*url.URL) (*url.URL, error)
}

const (
	minBackoff = 10 * time.Second // of a proxy that has failed, the first time
	maxBackoff = 10 * time.Minute
)

// A health is whether a proxy is left out.
type health struct {
	mu      sync.Mutex // guards all
	backoff time.Duration
	until   time.Time // it is left out; zero: it works, as far as is known
}

// excludedUntil reports until when a proxy is left out; zero for one that is not.
func (h *health) excludedUntil(now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.until) {
		return h.until
	}
	return time.Time{}
}

// markFailed leaves the proxy out, for longer each time. It reports whether that is news.
func (h *health) markFailed(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Before(h.until) {
		return false // another attempt from before
	}
	first := h.backoff == 0
	h.backoff = min(max(2*h.backoff, minBackoff), maxBackoff)
	h.until = now.Add(h.backoff)
	return first
}

// markWorking reports whether it is news that the proxy works.
func (h *health) markWorking() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	news := h.backoff > 0
	h.backoff, h.until = 0, time.Time{}
	return news
}

// CheckProxies reports which of the proxies that an environment names is none.
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

// parseProxy reads a proxy as an environment names it: a URL, or a host and port of an HTTP proxy. An error does not
// repeat it: it may hold a password.
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

// of is the proxy that t is reached through; nil for none.
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

// forDomain are the proxies of the longest domain that a host is in.
func (p *proxies) forDomain(hostname string) []*proxy {
	for domain := strings.TrimSuffix(hostname, "."); domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if all, ok := p.byDomain[domain]; ok {
			return all
		}
	}
	return p.byDomain[""]
}

// pick is the first proxy that works in the order that a host has of them. Where none does, it is the one that is
// tried again first: the failure is then told as what it is.
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

// score is a proxy's place for a host, by rendezvous hashing: it does not depend on the others.
func (p *proxies) score(host uint64, one *proxy) uint64 {
	return maphash.Comparable(p.seed, struct {
		host uint64
		name string
	}{host, one.name})
}

// alternative is another proxy for t after one has failed with err; nil if there is none that works, or it was not the
// proxy that failed.
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

// markFailed notes that the proxy of t has failed, if it has and there are others; it reports whether it is so.
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

// forHost is a proxy that a host is reached through by one of the schemes; nil for none.
func (p *proxies) forHost(hostname, host string) *proxy {
	if found := p.forTarget(target{scheme: "https", host: host, hostname: hostname}); found != nil {
		return found
	}
	return p.forTarget(target{scheme: "http", host: host, hostname: hostname})
}

func (p *proxies) hasAny() bool { return len(p.byDomain) > 0 || p.environmentProxy != nil }
