package maintext

import (
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Emphasis and images become spans with these attributes while the tree is built and the library processes it. Unlike
// em, a span is not reopened by the tree builder in each new paragraph, and the library ignores it.
const (
	emphasisAttr = "data-kumo-em" // strong or em
	imageAttr    = "data-kumo-src"
	altAttr      = "data-kumo-alt"

	imageRune = '\uFDD3' // the text of an image, so that it is not treated as empty
	imageMark = string(imageRune)
)

const (
	maxSpans = 16 // of emphasis, open at once; pages may leave them open
	maxPlace = 2 << 10
)

var emphases = map[atom.Atom]string{atom.B: "strong", atom.Strong: "strong", atom.Em: "em", atom.I: "em"}

// maxKnown limits the number of remembered classes and ids of a page, and of open spans.
const maxKnown = 1 << 10

// retainsSpan reports whether to keep the current span tag, and records the decision for its end tag. In documentation,
// most spans only color code or carry a style. Without them, a tree has half the nodes, and each later step is cheaper.
// Inside pre, classes and ids are ignored, because code is kept completely.
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

// isSignificant reports whether a class or id of a span may affect the extraction of its text. It caches the result.
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

// isSignificantName reports whether a class or id in lower case indicates an aside, an author or a date, or makes the
// library remove an element or read an author from it.
func isSignificantName(name string) bool {
	for word := range wordsOf(name) {
		if asideNames[word] || authorNames[word] || dateNames[word] || publishedNames[word] ||
			strings.HasSuffix(word, "date") {
			return true
		}
	}
	return slices.ContainsFunc(libraryNames, func(part string) bool { return strings.Contains(name, part) })
}

// libraryNames are parts of classes and ids for which go-readability removes an element in the middle of a text
// (internal/re2go: unlikely candidates and bylines; share elements).
var libraryNames = []string{
	"-ad-", "ai2html", "banner", "breadcrumbs", "combx", "comment", "community", "cover-wrap", "disqus", "extra", "footer",
	"gdpr", "header", "legends", "menu", "related", "remark", "replies", "rss", "shoutbox", "sidebar", "skyscraper",
	"social", "sponsor", "supplemental", "ad-break", "agegate", "pagination", "pager", "popup", "yom-remote",
	"byline", "author", "dateline", "writtenby", "share",
}

// span writes the replacement of a dropped tag if markup is requested.
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

// writeMarker writes a tag that is not in the page.
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
