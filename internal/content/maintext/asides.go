package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// removeAsides removes elements that are not main text according to their tag, role, class or id, unless they contain
// most of the page's prose. The library recognizes fewer names, and keeps figure captions. A header with prose stays,
// since that is usually an article's first paragraph.
func removeAsides(doc *html.Node) {
	all := prose(doc)
	remove(doc, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Head, atom.H1:
			return false
		case atom.Header:
			return prose(n) == 0
		}
		return isAside(n) && 2*prose(n) <= all
	})
}

// removeLinkLists removes blocks from an article that have more than two thirds of their letters in links.
func removeLinkLists(article *html.Node) {
	remove(article, func(n *html.Node) bool {
		if inline[n.Data] {
			return false
		}
		total, links := weighNode(n, false)
		return 3*links > 2*total
	})
}

// remove removes the elements below n for which gone returns true.
func remove(n *html.Node, gone func(*html.Node) bool) {
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if c.Type == html.ElementNode && gone(c) {
			n.RemoveChild(c)
		} else {
			remove(c, gone)
		}
		c = next
	}
}
