package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// writeMarker names the element that holds the page's prose, so that the library finds it on pages whose classes say nothing.
// It looks for the one whose own paragraphs weigh more than half of all; pages that name their main part themselves are
// left alone, and so are those whose prose is spread over many elements, as in a forum.
func mark(doc *html.Node) {
	var best *html.Node
	all, most := 0, 0
	for n := range descendants(doc) {
		switch {
		case n.DataAtom == atom.Article, n.DataAtom == atom.Main, attr(n, "role") == "main",
			attr(n, "itemprop") == "articleBody":
			return
		case n.DataAtom == atom.Div || n.DataAtom == atom.Section:
			own := paragraphWeight(n.ChildNodes())
			all += own
			if own > most {
				best, most = n, own
			}
		}
	}
	if best != nil && 2*most > all {
		best.Attr = append(best.Attr, html.Attribute{Key: "itemprop", Val: "articleBody"})
	}
}
