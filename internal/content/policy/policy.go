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

// Rules say which URLs are fetched by what does not depend on what a host answers.
type Rules struct {
	Scope        *weburl.Scope
	Block        *BlockList       // may be nil
	Include      []*regexp.Regexp // a URL must match one of these, if there are any; seeds and sitemaps need not
	Exclude      []*regexp.Regexp // and none of these
	MaxDepth     int              // hops from a seed; negative: without limit
	MaxRedirects int              // in a row
	Embeds       bool             // images, scripts and the like, too, wherever they lie
	Overrides    *Overrides       // what hosts and URLs have in place of the scope and MaxDepth; nil: nothing
}

// A Link is what led to a URL.
type Link struct {
	From      string // the URL of the page that has it
	Kind      page.Kind
	Depth     int32
	Redirects uint8 // in a row on the way
	Seed      bool  // a seed, or what one redirects to
	// how the page was reached that has it, a letter a hop: see page.Kind.Hop
	Path    string
	Fetched bool // the URL was fetched before, by such a link
}

// MovesSeed reports whether the link is where a seed redirects to. Such a URL is in scope, and widens the scope as a
// seed does: the site has another name than the user wrote.
func (l Link) MovesSeed() bool { return l.Seed && l.Kind == page.Redirect }

// A Verdict says what becomes of a link.
type Verdict struct {
	Rule     string // "" when it is to be fetched
	Why      string // the rule's reason, in a few words
	Deferred bool   // the rule speaks of the link, not of the URL: a better link may bring it in
	OffHost  bool   // not on the crawl's hosts: counted by host and forgotten
}

// Refused reports whether the URL is not to be fetched.
func (v Verdict) Refused() bool { return v.Rule != "" || v.OffHost }

// Defer is the verdict of a rule that speaks of the link alone.
func Defer(rule, why string) Verdict { return Verdict{Rule: rule, Why: why, Deferred: true} }

// Judge judges a URL and the link that leads to it.
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
	case l.Kind == page.Ping, l.Kind.Embed() && !r.Embeds: // a ping tells of a click, and there was none
		return Defer("embed", l.Kind.String())
	case most >= 0 && int(l.Depth) > most:
		return Defer("depth", fmt.Sprintf("deeper than %d", most))
	}
	return Verdict{}
}

// JudgeURL judges the URL itself, however it was met.
func (r *Rules) JudgeURL(u weburl.URL, l Link) Verdict {
	return r.judgeURL(u, l, r.Overrides.ForURL(u).Scope)
}

// InScope judges a URL by the scope alone: its own, if an override gives it one.
func (r *Rules) InScope(u weburl.URL) weburl.Verdict {
	return r.inScope(u, r.Overrides.ForURL(u).Scope)
}

func (r *Rules) inScope(u weburl.URL, own *weburl.Mode) weburl.Verdict {
	if own != nil {
		return r.Scope.JudgeAs(*own, u)
	}
	return r.Scope.Judge(u)
}

// judgeURL is JudgeURL of a URL with a scope of its own, or nil.
func (r *Rules) judgeURL(u weburl.URL, l Link, own *weburl.Mode) Verdict {
	if !u.IsHTTP() {
		return Verdict{Rule: "scope", Why: "not http or https", OffHost: true}
	}
	if why := r.Block.Match(u); why != "" {
		return Verdict{Rule: "block", Why: why}
	}
	if scope := r.inScope(u, own); !scope.In && !l.MovesSeed() && !trustedList(u, l) && !r.isRequisite(l) {
		if r.Embeds && l.Kind.Embed() && l.Kind != page.Ping {
			return Defer("embed", scope.Rule+", and embedded in what is no page of the crawl")
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

// TooDeep reports whether a URL's depth is beyond the limit.
func (r *Rules) TooDeep(u weburl.URL, depth int32) bool {
	most := r.depthLimit(u)
	return most >= 0 && int(depth) > most
}

// maxNested is how many style sheets out of scope may lie in each other.
const maxNested = 5

// isRequisite reports whether a link leads to what a page of the crawl is shown with: what is embedded in a page that
// is in scope, what that redirects to, and of style sheets elsewhere what they are shown with themselves.
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

// trailingEmbeds is how many hops at a path's end were to what is embedded, redirects not counted.
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

// trustedList reports whether a URL out of scope is that of a sitemap which may list what is in scope: one that
// robots.txt names, wherever it lies, and those on the same host that an index names.
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
