package maintext

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Emphasis and images are spans with these attributes on their way through tree and library: a tree builder does not
// open a span again in each new paragraph, and to the library it says nothing.
const (
	emphasisAttr = "data-kumo-em" // strong or em
	imageAttr    = "data-kumo-src"
	altAttr      = "data-kumo-alt"

	imageRune = '\uFDD3' // an image's text, so that it is not taken for empty
	imageMark = string(imageRune)
)

const (
	maxSpans = 16 // of emphasis, open at once: what a page leaves open stays so
	maxPlace = 2 << 10
)

var emphases = map[atom.Atom]string{atom.B: "strong", atom.Strong: "strong", atom.Em: "em", atom.I: "em"}

// maxKnown bounds the remembered classes and ids of a page, and its open spans.
const maxKnown = 1 << 10

// retainsSpan reports whether the current tag, a span, stays, and records that for its end tag. Most spans of documentation
// color code or carry a style: without them a tree has half the nodes, and each later step costs less. In a pre no class
// or id matters: code is quoted whole, with its comments.
func (t *thinner) retainsSpan(attrs bool) bool {
	kept := false
	for more := attrs; more && !kept; {
		var key, val []byte
		key, val, more = t.tokens.TagAttr()
		switch string(key) {
		case "class", "id":
			kept = t.open[atom.Pre] == 0 && t.isSignificant(val)
		case "role", "itemprop", "rel", "hidden", "style", "aria-hidden", "aria-modal":
			kept = true
		}
	}
	if len(t.kept) < maxKnown {
		t.kept = append(t.kept, kept)
	}
	return kept
}

// isSignificant reports whether a class or id of a span may decide what becomes of its text.
func (t *thinner) isSignificant(name []byte) bool {
	known, ok := t.names[string(name)]
	if !ok {
		known = isSignificantName(strings.ToLower(string(name)))
		if len(t.names) < maxKnown {
			t.names[string(name)] = known
		}
	}
	return known
}

// isSignificantName reports whether a class or id in small letters names an aside, an author or a date, or makes the library
// remove an element or read an author from it.
func isSignificantName(name string) bool {
	for word := range wordsOf(name) {
		if asideNames[word] || authorNames[word] || dateNames[word] || publishedNames[word] ||
			strings.HasSuffix(word, "date") {
			return true
		}
	}
	return slices.ContainsFunc(libraryNames, func(part string) bool { return strings.Contains(name, part) })
}

// libraryNames are parts of the classes and ids for which go-readability removes an element in the middle of a text
// (internal/re2go: unlikely candidates and bylines; share elements).
var libraryNames = []string{
	"-ad-", "ai2html", "banner", "breadcrumbs", "combx", "comment", "community", "cover-wrap", "disqus", "extra", "footer",
	"gdpr", "header", "legends", "menu", "related", "remark", "replies", "rss", "shoutbox", "sidebar", "skyscraper",
	"social", "sponsor", "supplemental", "ad-break", "agegate", "pagination", "pager", "popup", "yom-remote",
	"byline", "author", "dateline", "writtenby", "share",
}

// span writes what a tag that goes becomes where markup is wanted.
func (t *thinner) span(a atom.Atom) {
	if t.marks >= maxTags || t.marked >= maxThin {
		return
	}
	if a == atom.Img {
		t.image()
		return
	}
	name := emphases[a]
	if name == "" || t.spans >= maxSpans {
		return
	}
	t.spans++
	t.open[a]++
	t.writeMarker("<span " + emphasisAttr + "=" + name + ">")
}

// writeMarker writes a tag that is not the page's.
func (t *thinner) writeMarker(tag string) {
	t.marks++
	t.marked += len(tag)
	t.out.WriteString(tag)
}

func (t *thinner) image() {
	var src, alt string
	for more := true; more; {
		var key, val []byte
		key, val, more = t.tokens.TagAttr()
		switch string(key) {
		case "src":
			src = string(val)
		case "alt":
			alt = string(val)
		}
	}
	src = strings.TrimSpace(src)
	if src == "" || len(src) > maxPlace || strings.HasPrefix(src, "data:") {
		return
	}
	alt = html.EscapeString(collapse(alt, maxField))
	t.writeMarker("<span " + imageAttr + `="` + html.EscapeString(src) + `" ` + altAttr + `="` + alt + `">` + imageMark +
		"</span>")
}
