// Package robots parses robots.txt files and matches URLs against their rules.
//
// It follows RFC 9309. Where real files are sloppier than the RFC, it follows Google's published parser: it accepts
// misspelled directives, missing colons and byte order marks, and treats "index.html" as its folder. [Parse] stores
// only the lines for one agent, sorted so that the first matching rule decides.
//
// In one point Google's parser differs from the RFC: an escaped octet does not equal the plain one. So a rule for /%62
// does not match /b, and a rule for "/a b" does not match /a%20b. [Rules.Match] does the same. [Rules.Allowed], which
// the crawl uses, follows the RFC.
//
// In three points the package follows the RFC and not Google:
//
//   - %c3 equals %C3, and %7E equals ~, in rules and in URLs.
//   - "%2A" and "%24" in a rule match the literal characters.
//   - /robots.txt may always be fetched. [Rules.Match] returns the plain verdict of the lines on it.
//
// docs/decisions/robots.md compares the package with a library.
package robots

import (
	"strings"
	"time"
)

// Rules are the lines of a robots.txt for one agent. They are immutable. The zero value allows everything.
type Rules struct {
	text      string // the lines and patterns to which rules refer
	rules     []rule // in order of precedence
	sitemaps  []string
	clean     []CleanParam
	rates     []Rate
	usage     []Statement
	delay     time.Duration
	hasDelay  bool
	temporary bool
}

// A rule is an Allow or Disallow line. It refers to the text by offsets, so that the garbage collector sees thousands
// of rules as one object.
type rule struct {
	line, pattern       uint32
	number              uint32 // of the line in the file, from 1
	lineLen, patternLen uint16
	priority            uint16 // octets of the pattern as written, with non-ASCII octets escaped
	allow               bool
	nonCanonical        bool // the pattern is not in canonical form
}

// Allowed reports whether the agent may fetch a URL, given as its path and query in escaped form, "/a?b" (see
// [Target]). rule is the line that decided, "Disallow: /private/", without its comment; "" if there is none.
// /robots.txt is always allowed.
func (r *Rules) Allowed(pathAndQuery string) (ok bool, rule string) {
	ok, by := r.Decide(pathAndQuery)
	return ok, by.Text
}

// Decide is like Allowed, and returns the line with its number.
func (r *Rules) Decide(pathAndQuery string) (ok bool, by Line) {
	target := canonical(normalTarget(pathAndQuery))
	if target == "/robots.txt" { // RFC 9309, 2.2.2
		return true, Line{}
	}
	return r.match(target, true)
}

// Match is like Allowed without the exception for /robots.txt and without unescaping: it applies the lines literally.
func (r *Rules) Match(pathAndQuery string) (ok bool, rule string) {
	ok, by := r.match(normalTarget(pathAndQuery), false)
	return ok, by.Text
}

func (r *Rules) match(target string, plain bool) (ok bool, by Line) {
	for i := range r.rules {
		u := &r.rules[i]
		pattern := r.text[u.pattern : u.pattern+uint32(u.patternLen)]
		if plain && u.nonCanonical {
			pattern = canonical(pattern)
		}
		if matches(pattern, target) {
			return u.allow, r.lineOf(u)
		}
	}
	return true, Line{}
}

// Delay returns the time that the agent must wait between two requests, at most a year: the longest of its Crawl-delay
// lines or, if there are none, of its Request-rate lines at any hour. It returns false if there are neither.
func (r *Rules) Delay() (time.Duration, bool) { return r.delay, r.hasDelay }

// Rates returns the agent's Request-rate lines, in order. The caller must not modify them.
func (r *Rules) Rates() []Rate { return r.rates }

// Sitemaps returns the values of the Sitemap lines as written, in order. They apply to all agents. The caller must not
// modify them.
func (r *Rules) Sitemaps() []string { return r.sitemaps }

// Temporary reports whether the rules apply only until robots.txt can be fetched.
func (r *Rules) Temporary() bool { return r.temporary }

// AllowAll returns rules that allow everything. Allowed returns why, at most 1 KiB of it, as the rule.
func AllowAll(why string) *Rules { return singleRule(true, why) }

// DisallowAll returns temporary rules that allow only /robots.txt. why is as for AllowAll.
func DisallowAll(why string) *Rules {
	r := singleRule(false, why)
	r.temporary = true
	return r
}

// singleRule returns rules with one rule for "/", which matches every path.
func singleRule(allow bool, why string) *Rules {
	why = strings.ToValidUTF8(why[:min(len(why), 1<<10)], "")
	return &Rules{text: "/" + why, rules: []rule{{line: 1, lineLen: uint16(len(why)), patternLen: 1, priority: 1,
		allow: allow}}}
}

// empty reports whether there are neither rules nor other lines.
func (r *Rules) empty() bool {
	return len(r.rules)+len(r.sitemaps)+len(r.clean)+len(r.rates)+len(r.usage) == 0 && !r.hasDelay
}

// size returns the approximate memory of the rules, in bytes.
func (r *Rules) size() int64 {
	n := 192 + len(r.text) + 20*len(r.rules) + 32*len(r.rates)
	for _, s := range r.sitemaps {
		n += 16 + len(s)
	}
	for _, s := range r.usage {
		n += 112 + len(s.Text) + len(s.pattern)
	}
	for _, c := range r.clean {
		n += 64 + 2*len(c.Path)
		for _, name := range c.Params {
			n += 16 + len(name)
		}
	}
	return int64(n)
}
