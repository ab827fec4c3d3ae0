package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// removeAsides takes out of a page what says by its element, role, class or id that it is not the main text, unless it
// holds most of the page's prose. The library does so by fewer names, and keeps the captions of figures. A header with
// prose in it, which mostly is an article's first paragraph, stays.
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

// removeLinkLists takes the blocks out of an article that lead to others: those with more than two thirds of their
// letters in links.
func removeLinkLists(article *html.Node) {
	remove(article, func(n *html.Node) bool {
		if inline[n.Data] {
			return false
		}
		total, links := weighNode(n, false)
		return 3*links > 2*total
	})
}

// remove takes the elements below n out for which gone is true.
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
