package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// mark marks the element with the page's prose as the article, so that the library finds it on pages without helpful
// classes. This is the element whose own paragraphs weigh more than half of all. Pages that mark their main part
// themselves stay unchanged, as do pages whose prose is spread over many elements, such as forums.
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
