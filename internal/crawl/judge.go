package crawl

import (
	"fmt"
	"regexp"
	"strings"

	"kumo/internal/frontier"
	"kumo/internal/page"
	"kumo/internal/seen"
	"kumo/internal/weburl"
)

// A verdict says what becomes of a link.
type verdict struct {
	rule string // "" when it is to be fetched
	soft bool   // the rule speaks of the link, not of the URL: a better link may bring it in
	why  string
	off  bool // not on the crawl's hosts: counted by host and forgotten
}

// judge decides by what does not change during a crawl and does not depend on the host's answers.
func (e *Engine) judge(u weburl.URL, it *frontier.Item) verdict {
	if v := e.judgeURL(u, it); v.rule != "" || v.off {
		return v
	}
	switch {
	case int(it.Redirects) > e.cfg.MaxRedirects:
		return aside("redirects", fmt.Sprintf("more than %d in a row", e.cfg.MaxRedirects))
	case it.Kind == page.Ping, it.Kind.Embed() && !e.cfg.Embeds: // a ping tells of a click, and there was none
		return aside("embed", it.Kind.String())
	case e.tooDeep(it.Depth):
		return aside("depth", fmt.Sprintf("deeper than %d", e.cfg.Depth))
	}
	return verdict{}
}

// judgeURL judges the URL itself, however it was met.
func (e *Engine) judgeURL(u weburl.URL, it *frontier.Item) verdict {
	if !u.Web() {
		return verdict{rule: "scope", why: "not http or https", off: true}
	}
	if why := e.block.Match(u); why != "" {
		return out("block", why)
	}
	if scope := e.scope.Judge(u); !scope.In && !trustedList(u, it) {
		return verdict{rule: "scope", why: scope.Rule, off: !scope.Near}
	}
	if re := firstMatch(e.cfg.Exclude, it.URL); re != nil {
		return out("exclude", re.String())
	}
	if len(e.cfg.Include) > 0 && !it.Root && it.Kind != page.Sitemap && firstMatch(e.cfg.Include, it.URL) == nil {
		return out("include", "matches none of the patterns to include")
	}
	return verdict{}
}

// trustedList reports whether a URL out of scope is that of a sitemap which may list what is in scope: one that robots.txt names,
// wherever it lies, and those on the same host that an index names.
func trustedList(u weburl.URL, it *frontier.Item) bool {
	return it.Kind == page.Sitemap && (strings.HasSuffix(it.From, robotsPath) || originOf(it.From) == u.Origin())
}

func out(rule, why string) verdict   { return verdict{rule: rule, why: why} }
func aside(rule, why string) verdict { return verdict{rule: rule, why: why, soft: true} }

// state is what the URL is to be known as. What is left out can still be brought in: by a seed that names it, or by a scope that
// has grown.
func (v verdict) state() seen.State {
	if v.rule == "" {
		return seen.Known
	}
	return seen.Aside
}

func (e *Engine) tooDeep(depth int32) bool { return e.cfg.Depth >= 0 && int(depth) > e.cfg.Depth }

func firstMatch(res []*regexp.Regexp, s string) *regexp.Regexp {
	for _, re := range res {
		if re.MatchString(s) {
			return re
		}
	}
	return nil
}

// child is the item that a link on it leads to. A sitemap lies as deep as its entries, so that it is read when they are due, and
// only if they are.
func child(it *frontier.Item, l *page.Link) frontier.Item {
	c := frontier.Item{URL: l.URL, From: it.URL, Seed: it.Seed, Kind: l.Kind, Depth: it.Depth}
	switch {
	case l.Kind == page.Redirect:
		c.Redirects = it.Redirects + 1
		c.Root = it.Root
		if it.Kind == page.Sitemap {
			c.Kind = page.Sitemap // and is read as one
		}
	case !l.Kind.Embed() && it.Kind != page.Sitemap:
		c.Depth++
	}
	return c
}
