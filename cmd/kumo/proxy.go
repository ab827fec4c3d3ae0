package main

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"kumo/internal/base/weburl"
	"kumo/internal/content/fetch"
)

// noProxy is the value of --proxy that disables the environment's proxies.
const noProxy = "none"

// chooseProxies uses the proxies given by --proxy or, without that, those of the environment.
func (o *options) chooseProxies() error {
	f := &o.Job.Fetch
	f.Proxies, f.Environment = nil, nil
	if len(o.Proxies) > 0 {
		var err error
		f.Proxies, err = parseProxies(o.Proxies)
		return err
	}
	err := checkProxies(nil)
	switch {
	case err == nil:
		f.Environment = httpproxy.FromEnvironment()
	case o.noFetch:
		return nil // commands that only inspect need none; others call checkProxies
	}
	return err
}

// checkProxies returns an error if the environment's proxies are used and invalid.
func checkProxies(named []string) error {
	if len(named) > 0 {
		return nil
	}
	if err := fetch.CheckProxies(httpproxy.FromEnvironment()); err != nil {
		return usagef("%v; --proxy %s does without", err, noProxy)
	}
	return nil
}

// parseProxies parses the values of --proxy: URL, DOMAIN=URL, none or DOMAIN=none. All but none may be repeated.
func parseProxies(named []string) (rules []fetch.ProxyRule, err error) {
	direct, some := map[string]bool{}, map[string]bool{}
	for _, value := range named {
		domain, text := cutDomain(value)
		rule := fetch.ProxyRule{}
		if domain != "" {
			u, err := weburl.Parse("http://" + domain + "/")
			if err != nil || u.Hostname() == "" || u.Hostname() != u.Host() {
				return nil, usagef("--proxy DOMAIN=URL: %q is not a domain", domain)
			}
			rule.Domain = strings.Trim(u.Hostname(), ".")
		}
		if text == noProxy {
			direct[rule.Domain] = true
		} else {
			some[rule.Domain] = true
			if rule.URL, err = parseProxy(text); err != nil {
				return nil, err
			}
		}
		if direct[rule.Domain] && some[rule.Domain] {
			return nil, usagef("--proxy: none and a proxy, both for %s: leave one of them out", cmp.Or(rule.Domain, "all hosts"))
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// cutDomain splits DOMAIN=URL into domain and URL; the domain may be "".
func cutDomain(value string) (domain, url string) {
	domain, url, ok := strings.Cut(value, "=")
	if !ok || strings.ContainsAny(domain, ":/@") {
		return "", value
	}
	return domain, url
}

// parseProxy parses a proxy URL. Its errors never contain the URL, which may have a password.
func parseProxy(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, usagef("--proxy: " + noProxy + ", or a URL such as http://HOST:PORT, https://HOST:PORT, " +
			"socks5://HOST:PORT or socks5h://HOST:PORT is wanted, with DOMAIN= before it if it is for one domain")
	}
	return u, nil
}

// proxyVariables lists the environment variables that set proxies, for messages.
func proxyVariables(env *httpproxy.Config) string {
	if env == nil {
		return ""
	}
	var names []string
	if env.HTTPProxy != "" {
		names = append(names, "HTTP_PROXY")
	}
	if env.HTTPSProxy != "" {
		names = append(names, "HTTPS_PROXY")
	}
	return strings.Join(names, ", ")
}
