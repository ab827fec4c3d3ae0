package main

import (
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"kumo/internal/fetch"
)

// noProxy is what --proxy is told when nothing is to go through the environment's proxies.
const noProxy = "none"

// chooseProxies takes the proxy that was named or, if none was, those of the environment.
func (o *options) chooseProxies() (err error) {
	f := &o.job.Fetch
	f.Proxy, f.Environment = nil, nil
	switch o.proxy {
	case noProxy:
	case "":
		if err = o.checkProxies(); err == nil {
			f.Environment = httpproxy.FromEnvironment()
		} else if o.idle {
			err = nil // who only looks needs none; who does not calls checkProxies
		}
	default:
		f.Proxy, err = parseProxy(o.proxy)
	}
	return err
}

// checkProxies says what is wrong with the environment's proxies, if they are the ones to be used.
func (o *options) checkProxies() error {
	if o.proxy != "" {
		return nil
	}
	if err := fetch.CheckProxies(httpproxy.FromEnvironment()); err != nil {
		return usagef("%v; --proxy %s does without", err, noProxy)
	}
	return nil
}

// parseProxy never repeats what it was given: that may hold a password.
func parseProxy(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, usagef("--proxy: " + noProxy + ", or a URL such as http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT or " +
			"socks5h://HOST:PORT is wanted")
	}
	return u, nil
}

// proxyVariables are the variables of the environment that say which proxies are used, for people.
func (o *options) proxyVariables() string {
	env := o.job.Fetch.Environment
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
