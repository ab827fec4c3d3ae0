package maintext

import (
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

	imageMark = "\uFDD3" // an image's text, so that it is not taken for empty
)

const (
	maxSpans = 16 // of emphasis, open at once: what a page leaves open stays so
	maxPlace = 2 << 10
)

var emphases = map[atom.Atom]string{atom.B: "strong", atom.Strong: "strong", atom.Em: "em", atom.I: "em"}

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
	t.mark("<span " + emphasisAttr + "=" + name + ">")
}

// mark writes a tag that is not the page's.
func (t *thinner) mark(tag string) {
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
	t.mark("<span " + imageAttr + `="` + html.EscapeString(src) + `" ` + altAttr + `="` + alt + `">` + imageMark +
		"</span>")
}
