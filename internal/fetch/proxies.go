package fetch

import (
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// proxies say which proxy a target is reached through.
type proxies struct {
	all *proxy // every target's; nil: those below say

	forHTTP, forHTTPS *proxy // nil: none
	// goes reports through which URL a request goes, or nil: what of the two holds for a target
	goes func(*url.URL) (*url.URL, error)
}

// CheckProxies reports which of the proxies that an environment names is none.
func CheckProxies(env *httpproxy.Config) error {
	_, err := newProxies(nil, env)
	return err
}

func newProxies(all *url.URL, env *httpproxy.Config) (p *proxies, err error) {
	p = &proxies{}
	if all != nil || env == nil {
		p.all, err = newProxy(all)
		return p, err
	}
	if p.forHTTP, err = proxyOf("HTTP_PROXY", env.HTTPProxy); err != nil {
		return nil, err
	}
	if p.forHTTPS, err = proxyOf("HTTPS_PROXY", env.HTTPSProxy); err != nil {
		return nil, err
	}
	if p.forHTTP != nil || p.forHTTPS != nil {
		p.goes = env.ProxyFunc()
	}
	return p, nil
}

// proxyOf reads a proxy as an environment names it: a URL, or a host and port of an HTTP proxy. An error does not
// repeat it: it may hold a password.
func proxyOf(variable, value string) (*proxy, error) {
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
	return nil, fmt.Errorf("%s in the environment: a URL such as http://HOST:PORT or socks5://HOST:PORT is wanted", variable)
}

// of is the proxy that t is reached through; nil for none.
func (p *proxies) of(t target) *proxy {
	if p.goes == nil {
		return p.all
	}
	chosen := p.forHTTP
	if t.scheme == "https" {
		chosen = p.forHTTPS
	}
	if chosen == nil {
		return nil
	}
	if u, err := p.goes(&url.URL{Scheme: t.scheme, Host: t.host}); u == nil || err != nil {
		return nil
	}
	return chosen
}

// ofHost is a proxy that a host is reached through by one of the schemes; nil for none.
func (p *proxies) ofHost(host string) *proxy {
	if found := p.of(target{scheme: "https", host: host}); found != nil {
		return found
	}
	return p.of(target{scheme: "http", host: host})
}

// some reports whether there is any proxy.
func (p *proxies) some() bool { return p.all != nil || p.goes != nil }
