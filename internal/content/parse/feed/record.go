package feed

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A record is what one url, sitemap, item or entry element says, or what stands outside of all.
type record struct {
	entry       Entry // what all its links share
	links       []ref
	base        weburl.URL
	guid        string // an RSS item's permanent address, which may be its link
	guidNotLink bool   // the guid is no address
}

type ref struct {
	url, rel, lang string
	kind           page.Kind
}

// maxRefs bounds the links of a record.
const maxRefs = 1000

func (r *record) add(url, rel, lang string, kind page.Kind) {
	if url != "" && len(r.links) < maxRefs {
		r.links = append(r.links, ref{url, rel, lang, kind})
	}
}

// reader reads a list in XML.
type reader struct {
	*stream
	scanner
	root    string // the first element: "urlset", "sitemapindex", "rss", "RDF", "feed"
	kind    page.Kind
	current record
	inside  string // the element whose record is now, "" outside
	base    weburl.URL

	locKind page.Kind // what a sitemap's loc leads to
}

// xml reads a list in XML. Links outside of records come when the record or the list that follows them ends.
func (s *stream) xml() error {
	r := &reader{stream: s, base: s.base}
	r.scanner.in = s.in
	r.current = record{entry: Entry{Priority: defaultPriority}, base: s.base}
	for {
		err := r.next()
		if errors.Is(err, io.EOF) {
			return r.flush()
		}
		if err != nil {
			return err
		}
		if r.root == "" {
			if err := r.start(); err != nil {
				return err
			}
			continue
		}
		if err := r.element(); err != nil {
			return err
		}
	}
}

// start looks at the first element.
func (r *reader) start() error {
	r.root = strings.ToLower(r.name)
	switch r.root {
	case "urlset":
		r.kind = page.Listed
	case "sitemapindex":
		r.kind = page.Sitemap
	case "rss", "rdf", "feed":
		r.kind = page.Feed
	default:
		return ErrFormat
	}
	r.locKind = r.kind
	r.base = r.rebased(r.base)
	r.current.base = r.base
	return nil
}

// rebased is the base URL within the element just read, which may have one of its own.
func (r *reader) rebased(base weburl.URL) weburl.URL {
	if own := r.attr("base"); own != "" {
		if u, err := base.Resolve(own); err == nil {
			return u
		}
	}
	return base
}

// isRecord reports whether the element is one of those that the list consists of.
func (r *reader) isRecord() bool {
	switch r.root {
	case "urlset":
		return r.name == "url"
	case "sitemapindex":
		return r.name == "sitemap"
	case "feed":
		return r.name == "entry"
	}
	return r.name == "item"
}

func (r *reader) element() error {
	if r.kind != page.Feed { // sitemaps are also written in upper case
		r.name = strings.ToLower(r.name)
	}
	if r.isRecord() {
		if err := r.flush(); err != nil || r.end {
			return err
		}
		r.inside = r.name
		r.current.base = r.rebased(r.base)
		return nil
	}
	if r.kind != page.Feed {
		r.sitemapElement()
	} else {
		r.feedElement()
	}
	return nil
}

// flush gives the links of the record, and begins what is outside of any.
func (r *reader) flush() error {
	if r.kind == page.Feed && len(r.current.links) == 0 {
		r.current.add(r.current.guid, "", "", page.Feed)
	}
	if err := r.addRecord(r.current.base, &r.current); err != nil {
		return err
	}
	r.current = record{entry: Entry{Priority: defaultPriority}, links: r.current.links[:0], base: r.base}
	r.inside, r.locKind = "", r.kind
	return nil
}

// sitemapElement looks at an element of a sitemap, by its end tag if its text matters.
func (r *reader) sitemapElement() {
	if r.inside == "" {
		return
	}
	switch r.name {
	case "loc":
		if r.end {
			r.current.add(r.content(), "", "", r.locKind)
		}
	case "image":
		if r.locKind = page.Image; r.end {
			r.locKind = r.kind
		}
	case "content_loc", "player_loc":
		if r.end {
			r.current.add(r.content(), "", "", page.Media)
		}
	case "thumbnail_loc":
		if r.end {
			r.current.add(r.content(), "", "", page.Image)
		}
	case "lastmod":
		if t := r.content(); r.end && r.current.entry.Modified.IsZero() {
			r.current.entry.Modified = date(t)
		}
	case "priority":
		if p, err := strconv.ParseFloat(r.content(), 64); r.end && err == nil && p >= 0 && p <= 1 {
			r.current.entry.Priority = p
		}
	case "link":
		if !r.end {
			r.current.add(r.attr("href"), r.attr("rel"), r.attr("hreflang"), r.kind)
		}
	}
}

// feedElement looks at an element of RSS or Atom.
func (r *reader) feedElement() {
	switch r.name {
	case "link":
		r.link()
	case "guid":
		if !r.end {
			r.current.guidNotLink = r.attr("isPermaLink") == "false"
		} else if g := r.content(); !r.current.guidNotLink && isAddress(g) {
			r.current.guid = g
		}
	case "origLink", "comments":
		if t := r.content(); r.end && isAddress(t) {
			r.current.add(t, "", "", page.Feed)
		}
	case "enclosure":
		if !r.end {
			r.current.add(r.attr("url"), "", "", mediaKind(r.attr("type")))
		}
	case "content", "thumbnail":
		if url := r.attr("url"); !r.end && url != "" {
			r.current.add(url, "", "", r.mediaElementKind())
		} else if src := r.attr("src"); !r.end && src != "" {
			r.current.add(src, "", "", page.Feed)
		}
	case "pubDate", "date", "updated", "modified", "published", "issued":
		if t := r.content(); r.end && r.current.entry.Modified.IsZero() {
			r.current.entry.Modified = date(t)
		}
	case "icon", "logo":
		if r.end && r.root == "feed" {
			r.current.add(r.content(), "", "", page.Image)
		}
	}
}

// link takes a link of Atom, which is in an attribute, or of RSS, which is in the text. One to a hub is no document.
func (r *reader) link() {
	href, rel := r.attr("href"), r.attr("rel")
	switch {
	case r.end:
		r.current.add(r.content(), "", "", page.Feed)
	case href == "" || rel == "hub" || rel == "search":
	case rel == "enclosure":
		r.current.add(href, rel, r.attr("hreflang"), mediaKind(r.attr("type")))
	default:
		r.current.add(href, rel, r.attr("hreflang"), page.Feed)
	}
}

// mediaElementKind is the kind of a content or thumbnail element of Media RSS.
func (r *reader) mediaElementKind() page.Kind {
	if r.name == "thumbnail" || r.attr("medium") == "image" {
		return page.Image
	}
	return mediaKind(r.attr("type"))
}

func mediaKind(mediaType string) page.Kind {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return page.Image
	case strings.HasPrefix(mediaType, "text/"), strings.HasPrefix(mediaType, "application/"):
		return page.Feed
	}
	return page.Media
}

func isAddress(s string) bool {
	return len(s) > len("https://") && (strings.EqualFold(s[:7], "http://") || strings.EqualFold(s[:8], "https://"))
}
