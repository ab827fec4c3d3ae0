package kumo_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"kumo"
)

// Run refuses invalid option values, names the option, and does nothing.
func TestRunRefusesWrongOptions(t *testing.T) {
	other := &http.Cookie{Name: "a", Domain: "b.test"}
	for want, opt := range map[string]kumo.Option{
		"kumo.Concurrency(-1): at least one host":    kumo.Concurrency(-1),
		"kumo.Concurrency(0): at least one host":     kumo.Concurrency(0),
		"kumo.PerHost(0): a host needs":              kumo.PerHost(0),
		"kumo.Delay(-1s): it cannot be negative":     kumo.Delay(-time.Second),
		"kumo.Limit(-1): it cannot be negative":      kumo.Limit(-1),
		"kumo.SizeLimit(-1): it cannot":              kumo.SizeLimit(-1),
		"kumo.TimeLimit(-1ns): it cannot":            kumo.TimeLimit(-1),
		"kumo.PagesPerHost(-1): it cannot":           kumo.PagesPerHost(-1),
		"kumo.HostsPerDomain(-1): it cannot":         kumo.HostsPerDomain(-1),
		"kumo.Rate(-1): it cannot":                   kumo.Rate(-1),
		"kumo.MaxBody(0): it must be greater":        kumo.MaxBody(0),
		"kumo.Memory(-1): it must be greater":        kumo.Memory(-1),
		"kumo.Tries(0): a URL needs":                 kumo.Tries(0),
		"kumo.Timeout(0s): it must be greater":       kumo.Timeout(0),
		`kumo.Scope: scope "galaxy"`:                 kumo.Scope("galaxy"),
		`kumo.Canon: `:                               kumo.Canon("nonsense"),
		`kumo.Ignore: "x" is not one of`:             kumo.Ignore("x"),
		`kumo.Sitemaps: sitemaps "all"`:              kumo.Sitemaps("all"),
		`kumo.Order("best"): it is one of depth`:     kumo.Order("best"),
		`kumo.Render("some"): it is one of never`:    kumo.Render("some", nil),
		`kumo.Render(nil): the Renderer is nil`:      kumo.Render("auto", nil),
		`kumo.Documents(nil): the DocumentReader is`: kumo.Documents(nil),
		"kumo.Include(nil): an expression is nil":    kumo.Include(nil),
		"kumo.Exclude(nil): an expression is nil":    kumo.Exclude(nil),
		"kumo.Prefer: the expression is nil":         kumo.Prefer(nil, 2),
		"kumo.Contact: the value":                    kumo.Contact("a\nb"),
		"kumo.UserAgent: the value":                  kumo.UserAgent("a\nb"),
		"kumo.Header: the field follows":             kumo.Header("Host", "example.com"),
		"kumo.Header: put the user":                  kumo.Header("Proxy-Authorization", "x"),
		`kumo.BasicAuth(""): the name is empty`:      kumo.BasicAuth("", "x"),
		`kumo.Proxy: want a URL such as http://HOST`: kumo.Proxy("ftp://me:secret@example.com"),
		"kumo.TLS: the configuration is nil":         kumo.TLS(nil),
		"kumo.Resolver: it is nil":                   kumo.Resolver(nil),
		"kumo.Keep: the Store is nil":                kumo.Keep(nil),
		"kumo.Login: open no-such-file":              kumo.Login("no-such-file"),
		"kumo.CookieFile: open no-such-file":         kumo.CookieFile("no-such-file"),
		`kumo.Cookies: cookie "a b=c": its name`:     kumo.Cookies("http://a.test/", &http.Cookie{Name: "a b=c"}),
		`kumo.Cookies: cookie "a": its domain is b`:  kumo.Cookies("http://a.test/", other),
		`kumo.Out("s3://crawls"): want a folder`:     kumo.Out("s3://crawls"),
		"kumo.OnPage(nil): the function":             func(c *kumo.Crawler) { c.OnPage(nil) },
		"kumo.OnLink(nil): the function":             func(c *kumo.Crawler) { c.OnLink(nil) },
	} {
		c := kumo.New(opt)
		c.OnPage(func(p *kumo.Page) { t.Errorf("%s: fetched %s", want, p.URL) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		err := c.Run(ctx, "http://127.0.0.1:1/")
		cancel()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "--") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
