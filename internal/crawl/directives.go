package crawl

import (
	"fmt"
	"slices"
	"strings"

	"kumo/internal/page"
)

// Directives are what a page may ask of robots, by a robots meta element or an X-Robots-Tag field, or by the rel of a link.
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
		i := slices.Index(directiveNames, name)
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

func (e *Engine) obeys(d Directives) bool { return e.cfg.Ignore&d == 0 }

// nofollow says why a link of a page is not to be followed, "" if it may be. Where a browser goes without being asked, which is
// to redirects and parts of the page, a directive about links does not hold.
func (e *Engine) nofollow(asks *page.Robots, l *page.Link) string {
	switch {
	case l.Kind.Embed(), l.Kind == page.Redirect, l.Kind == page.Refresh:
	case asks.NoFollow && e.obeys(NoFollow):
		return asWritten(asks)
	case l.NoFollow && e.obeys(RelNoFollow):
		return "rel=" + l.Rel
	}
	return ""
}

// asWritten are a page's directives in its own words.
func asWritten(asks *page.Robots) string {
	var all []string
	if asks.Meta != "" {
		all = append(all, "robots meta element: "+asks.Meta)
	}
	if asks.Header != "" {
		all = append(all, "X-Robots-Tag: "+asks.Header)
	}
	return strings.Join(all, "; ")
}

// heed marks a record with what its page asks for and the crawl obeys.
func (e *Engine) heed(rec *page.Record) {
	asks := &rec.Page.Robots
	expired := !asks.UnavailableAfter.IsZero() && !rec.Time.Before(asks.UnavailableAfter)
	rec.NoIndex = asks.NoIndex && e.obeys(NoIndex) || expired && e.obeys(UnavailableAfter)
	rec.NoArchive = asks.NoArchive && e.obeys(NoArchive)
}
