package feed

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"kumo/internal/base/page"
	"kumo/internal/base/weburl"
)

// A record is the content of a url, sitemap, item or entry element, or of the list outside of these.
type record struct {
	entry       Entry // common to all its links
	links       []ref
	base        weburl.URL
	guid        string // an RSS item's permanent ID, which may be its link
	guidNotLink bool   // the guid is not a URL
}

type ref struct {
	url, rel, lang string
	kind           page.Kind
}

// maxRefs limits the links of a record.
const maxRefs = 1000

func (r *record) add(url, rel, lang string, kind page.Kind) {
	if url != "" && len(r.links) < maxRefs {
		r.links = append(r.links, ref{url, rel, lang, kind})
	}
}

// reader reads an XML list.
type reader struct {
	*stream
	scanner
	root    string // name of the first element: "urlset", "sitemapindex", "rss", "RDF", "feed"
	kind    page.Kind
	current record
	inside  string // name of the current record's element, "" outside
	base    weburl.URL

	locKind page.Kind // kind of a sitemap's loc
}

// xml reads an XML list. Links outside of records are yielded when the next record or the list ends.
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

// start processes the first element.
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

// rebased returns the base URL inside the current element, which may set its own.
func (r *reader) rebased(base weburl.URL) weburl.URL {
	if own := r.attr("base"); own != "" {
		if u, err := base.Resolve(own); err == nil {
			return u
		}
	}
	return base
}

// isRecord reports whether the current element is a record of the list.
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
	if r.kind != page.Feed { // some sitemaps use upper case
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

// flush yields the links of the record, and begins one for links outside of records.
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

// sitemapElement processes an element of a sitemap, at its end tag if its text is needed.
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

// feedElement processes an element of RSS or Atom.
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

// link processes a link: Atom has it in an attribute, RSS in the text. A link to a hub is not a document.
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

// mediaElementKind returns the kind of a content or thumbnail element of Media RSS.
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
