package policy

import (
	"fmt"
	"slices"
	"strings"

	"kumo/internal/base/page"
)

// Directives are the requests of a page to robots: in a robots meta element, an X-Robots-Tag field, or the rel of a
// link.
type Directives uint8

// Directives.
const (
	NoFollow         Directives = 1 << iota // do not follow the page's links
	RelNoFollow                             // do not follow links with rel=nofollow
	NoIndex                                 // mark the page's record as not for indexes, and do not keep its text
	NoArchive                               // do not archive the page
	UnavailableAfter                        // like NoIndex, from the given time on
)

var directiveNames = []string{"nofollow", "rel-nofollow", "noindex", "noarchive", "unavailable-after"}

// ParseDirectives parses names of directives; "all" means all of them.
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

// Names returns the names of the directives in d, in a fixed order.
func (d Directives) Names() []string {
	var names []string
	for i, name := range directiveNames {
		if d&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// LinkRules are the page's directives for its links, as far as the crawl obeys them.
type LinkRules struct {
	pageReason string // reason not to follow any link, "" if links are followed
	obeysRel   bool   // obey rel=nofollow
}

// Links returns the page's directives for its links, except those in d, which the crawl ignores.
func (d Directives) Links(r *page.Robots) LinkRules {
	rules := LinkRules{obeysRel: d&RelNoFollow == 0}
	if r.NoFollow && d&NoFollow == 0 {
		rules.pageReason = quoteDirectives(r)
	}
	return rules
}

// NoFollow returns the reason not to follow a link, "" if it may be followed. Redirects and parts of the page are not
// affected, since a browser requests them by itself.
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

// maxQuoted limits the quotation of a page's directives, in bytes: it is repeated for each skipped link.
const maxQuoted = 200

// quoteDirectives returns a page's directives as written.
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

// Mark sets the directives of a page in its record, except those in d, which the crawl ignores.
func (d Directives) Mark(rec *page.Record) {
	asks := &rec.Page.Robots
	expired := !asks.UnavailableAfter.IsZero() && !rec.Time.Before(asks.UnavailableAfter)
	rec.NoIndex = asks.NoIndex && d&NoIndex == 0 || expired && d&UnavailableAfter == 0
	rec.NoArchive = asks.NoArchive && d&NoArchive == 0
}
