// Package policy implements the rules of a crawl.
//
//   - [Rules], with a [BlockList] and [Overrides], decide which URLs are fetched.
//   - [Directives] select which requests of pages, such as noindex, the crawl obeys.
//   - [Sitemaps] select which sitemaps are read.
//   - [Quota] limits the number of pages.
//   - [Recrawl] schedules revisits.
//
// The rules are pure functions and data. Only a block list uses a disk and a clock: it is reloaded when its file
// changes.
package policy

import (
	"fmt"
	"regexp"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// Rules decide which URLs are fetched, as far as that does not depend on a host's responses.
type Rules struct {
	Scope        *weburl.Scope
	Block        *BlockList       // may be nil
	Include      []*regexp.Regexp // a URL must match one of these, unless there are none; seeds and sitemaps need not
	Exclude      []*regexp.Regexp // a URL must not match any of these
	MaxDepth     int              // hops from a seed; negative: no limit
	MaxRedirects int              // consecutive
	Embeds       bool             // also fetch images, scripts and so on, on any host
	Overrides    *Overrides       // replace Scope and MaxDepth for hosts and URLs; nil: none
}

// A Link is the link that led to a URL.
type Link struct {
	From      string // URL of the page with the link
	Kind      page.Kind
	Depth     int32
	Redirects uint8 // consecutive redirects that led here
	Seed      bool  // a seed, or the target of a seed's redirect
	// path to the page with the link, one letter per hop: see page.Kind.Hop
	Path    string
	Fetched bool // the URL was fetched earlier by such a link
}

// MovesSeed reports whether the link is the redirect of a seed. Its target is in scope and extends the scope like a
// seed, because the site now has another name than the user wrote.
func (l Link) MovesSeed() bool { return l.Seed && l.Kind == page.Redirect }

// A Verdict is the decision about a link.
type Verdict struct {
	Rule     string // "": fetch the URL
	Why      string // short reason
	Deferred bool   // the rule is about the link, not the URL: a better link may lead to a fetch
	OffHost  bool   // not on the crawl's hosts: only counted by host
}

// Refused reports whether the URL must not be fetched.
func (v Verdict) Refused() bool { return v.Rule != "" || v.OffHost }

// Defer returns the verdict of a rule about the link, not the URL.
func Defer(rule, why string) Verdict { return Verdict{Rule: rule, Why: why, Deferred: true} }

// Judge decides about a URL by the URL and the link to it.
func (r *Rules) Judge(u weburl.URL, l Link) Verdict {
	own := r.Overrides.ForURL(u)
	if v := r.judgeURL(u, l, own.Scope); v.Refused() {
		return v
	}
	most := r.MaxDepth
	if own.Depth != nil {
		most = *own.Depth
	}
	switch {
	case int(l.Redirects) > r.MaxRedirects:
		return Defer("redirects", fmt.Sprintf("more than %d in a row", r.MaxRedirects))
	case l.Kind == page.Ping, l.Kind.Embed() && !r.Embeds: // a ping reports a click, and there was none
		return Defer("embed", l.Kind.String())
	case most >= 0 && int(l.Depth) > most:
		return Defer("depth", fmt.Sprintf("deeper than %d", most))
	}
	return Verdict{}
}

// JudgeURL decides about a URL by the URL alone.
func (r *Rules) JudgeURL(u weburl.URL, l Link) Verdict {
	return r.judgeURL(u, l, r.Overrides.ForURL(u).Scope)
}

// InScope decides by the scope alone. If an override sets the URL's scope, it uses that.
func (r *Rules) InScope(u weburl.URL) weburl.Verdict {
	return r.inScope(u, r.Overrides.ForURL(u).Scope)
}

func (r *Rules) inScope(u weburl.URL, own *weburl.Mode) weburl.Verdict {
	if own != nil {
		return r.Scope.JudgeAs(*own, u)
	}
	return r.Scope.Judge(u)
}

// judgeURL implements JudgeURL. own is the URL's own scope, or nil.
func (r *Rules) judgeURL(u weburl.URL, l Link, own *weburl.Mode) Verdict {
	if !u.IsHTTP() {
		return Verdict{Rule: "scope", Why: "not http or https", OffHost: true}
	}
	if why := r.Block.Match(u); why != "" {
		return Verdict{Rule: "block", Why: why}
	}
	if scope := r.inScope(u, own); !scope.In && !l.MovesSeed() && !trustedList(u, l) && !r.isRequisite(l) {
		if r.Embeds && l.Kind.Embed() && l.Kind != page.Ping {
			return Defer("embed", scope.Rule+", and not embedded in a page of the crawl")
		}
		return Verdict{Rule: "scope", Why: scope.Rule, OffHost: !scope.OnSeedHost}
	}
	if re := firstMatch(r.Exclude, u.String()); re != nil {
		return Verdict{Rule: "exclude", Why: re.String()}
	}
	if len(r.Include) > 0 && !l.Seed && l.Kind != page.Sitemap && firstMatch(r.Include, u.String()) == nil {
		return Verdict{Rule: "include", Why: "matches none of the patterns to include"}
	}
	return Verdict{}
}

// TooDeep reports whether a URL's depth exceeds the limit.
func (r *Rules) TooDeep(u weburl.URL, depth int32) bool {
	most := r.depthLimit(u)
	return most >= 0 && int(depth) > most
}

// maxNested limits how many style sheets out of scope may import each other.
const maxNested = 5

// isRequisite reports whether a link leads to a resource that a page of the crawl is displayed with: an embed of a page
// in scope, the target of its redirect, or an embed of a style sheet elsewhere.
func (r *Rules) isRequisite(l Link) bool {
	embedded := l.Kind.Embed() && l.Kind != page.Ping
	switch {
	case !r.Embeds:
		return false
	case l.Fetched:
		return embedded || l.Kind == page.Redirect
	case l.Kind == page.Redirect:
		return trailingEmbeds(l.Path) > 0
	case !embedded:
		return false
	}
	if from, err := weburl.Parse(l.From); err != nil || r.InScope(from).In {
		return err == nil
	}
	n := trailingEmbeds(l.Path)
	return (l.Kind == page.CSS || l.Kind == page.Style) && n > 0 && n < maxNested
}

// trailingEmbeds returns the number of embeds at the end of a path, without redirects.
func trailingEmbeds(path string) (n int) {
	for i := len(path) - 1; i >= 0; i-- {
		switch path[i] {
		case 'E':
			n++
		case 'R':
		default:
			return n
		}
	}
	return n
}

// trustedList reports whether a URL out of scope is a sitemap that may list URLs in scope. The sitemap may be on any
// host if robots.txt names it, and on the same host if a sitemap index names it.
func trustedList(u weburl.URL, l Link) bool {
	if l.Kind != page.Sitemap {
		return false
	}
	if strings.HasSuffix(l.From, "/robots.txt") {
		return true
	}
	from, err := weburl.Parse(l.From)
	return err == nil && from.Origin() == u.Origin()
}

func firstMatch(patterns []*regexp.Regexp, s string) *regexp.Regexp {
	for _, re := range patterns {
		if re.MatchString(s) {
			return re
		}
	}
	return nil
}
