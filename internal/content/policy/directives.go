package policy

import (
	"fmt"
	"slices"
	"strings"

	"kumo/internal/base/page"
)

// Directives are what a page may ask of robots, by a robots meta element or an X-Robots-Tag field, or by the rel of a
// link.
type Directives uint8

// The directives.
const (
	NoFollow         Directives = 1 << iota // the page's links are not followed
	RelNoFollow                             // a link with rel=nofollow is not followed
	NoIndex                                 // the page's record says that no index may show it, and its text is not kept
	NoArchive                               // the page is not kept in the archive
	UnavailableAfter                        // as NoIndex, from that time on
)

var directiveNames = []string{"nofollow", "rel-nofollow", "noindex", "noarchive", "unavailable-after"}

// ParseDirectives reads names of directives; "all" is every one.
func ParseDirectives(names []string) (Directives, error) {
	var d Directives
	for _, name := range names {
		i := slices.Index(directiveNames, strings.ReplaceAll(name, "_", "-"))
		switch {
		case name == "all":
			d = 1<<len(directiveNames) - 1
		case i < 0:
			return 0, fmt.Errorf("%q is not one of %s, all", name, strings.Join(directiveNames, ", "))
		default:
			d |= 1 << i
		}
	}
	return d, nil
}

// Names are the names of the directives in d, in a fixed order.
func (d Directives) Names() []string {
	var names []string
	for i, name := range directiveNames {
		if d&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// LinkRules are what a page asks for its links, as far as the crawl obeys.
type LinkRules struct {
	pageReason string // why none is followed, "" if they are
	obeysRel   bool   // rel=nofollow counts
}

// Links returns what a page's directives ask for its links, but for those in d, which the crawl ignores.
func (d Directives) Links(r *page.Robots) LinkRules {
	rules := LinkRules{obeysRel: d&RelNoFollow == 0}
	if r.NoFollow && d&NoFollow == 0 {
		rules.pageReason = quoteDirectives(r)
	}
	return rules
}

// NoFollow says why a link is not to be followed, "" if it may be. Where a browser goes without being asked, which is
// to redirects and parts of the page, a directive about links does not hold.
func (r LinkRules) NoFollow(l *page.Link) string {
	switch {
	case l.Kind.Embed(), l.Kind == page.Redirect, l.Kind == page.Refresh:
	case r.pageReason != "":
		return r.pageReason
	case l.NoFollow && r.obeysRel:
		return "rel=" + l.Rel
	}
	return ""
}

// maxQuoted bounds what is quoted of a page's directives: each of its links has that in its line.
const maxQuoted = 200

// quoteDirectives are a page's directives in its own words.
func quoteDirectives(r *page.Robots) string {
	var all []string
	if r.Meta != "" {
		all = append(all, "robots meta element: "+r.Meta)
	}
	if r.Header != "" {
		all = append(all, "X-Robots-Tag: "+r.Header)
	}
	text := strings.Join(all, "; ")
	return strings.ToValidUTF8(text[:min(len(text), maxQuoted)], "")
}

// Mark notes in a record what its page asks for, but for those in d, which the crawl ignores.
func (d Directives) Mark(rec *page.Record) {
	asks := &rec.Page.Robots
	expired := !asks.UnavailableAfter.IsZero() && !rec.Time.Before(asks.UnavailableAfter)
	rec.NoIndex = asks.NoIndex && d&NoIndex == 0 || expired && d&UnavailableAfter == 0
	rec.NoArchive = asks.NoArchive && d&NoArchive == 0
}
