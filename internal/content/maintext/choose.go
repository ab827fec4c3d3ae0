package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// roots returns the nodes with the main text, in document order.
func (d *document) roots(k kind) []int {
	scope := 0
	if d.main > 0 && (4*d.goodOf(d.main) >= d.goodOf(0) || 2*d.between(d.main).text >= d.between(0).text) {
		scope = d.main
	}
	switch k {
	case product:
		return d.fromHeadline(scope)
	case thread:
		if posts := threadRoots(d, scope); posts != nil {
			return posts
		}
	case articleKind, documentation:
		best, _ := d.heaviestArticle()
		if best > 0 && (5*d.goodOf(best) >= 2*d.goodOf(scope) || k == articleKind && 10*d.goodOf(best) >= d.goodOf(scope) &&
			d.hasHeading(best)) {
			return []int{best}
		}
	}
	if scope > 0 {
		return []int{scope}
	}
	return d.descend(k)
}

// fromHeadline returns the product that the page declares, otherwise a part of the page from its first h1 on.
func (d *document) fromHeadline(scope int) []int {
	if scope == 0 {
		scope = d.descend(product)[0]
	}
	h1 := d.firstHeading()
	for i := range h1 {
		if d.flags[i]&productItem != 0 && !d.skips(i) && h1 < d.tree.End(i) {
			return []int{i}
		}
	}
	if h1 <= scope || h1 >= d.tree.End(scope) {
		return []int{scope}
	}
	var all []int
	for c := scope + 1; c < d.tree.End(scope); c = d.tree.End(c) {
		if h1 < d.tree.End(c) {
			all = append(all, c)
		}
	}
	return all
}

// hasHeading reports whether a node contains the page's first h1.
func (d *document) hasHeading(i int) bool {
	h1 := d.firstHeading()
	return h1 > i && h1 < d.tree.End(i)
}

// firstHeading returns the page's first h1, 0 if there is none.
func (d *document) firstHeading() int {
	for i := range d.flags {
		if d.tree.Node(i).DataAtom == atom.H1 && d.flags[i]&(gone|aside) == 0 {
			return i
		}
	}
	return 0
}

// descend goes from the document to the innermost node with most of the good passages. If one child has most of the
// rest, the text is this child, the children that are not much lighter, and what is between them, from the headline on.
func (d *document) descend(k kind) []int {
	at, best := 0, 0
	for {
		best = d.heaviestChild(at)
		if best < 0 || !isContainer(d.tree.Node(best)) || 5*d.goodOf(best) < 4*d.goodOf(at) ||
			!isOneText(k) && 5*d.plain(best) < 4*d.plain(at) || k == documentation && d.isSection(at, best) {
			break
		}
		at = best
	}
	if best < 0 || !isOneText(k) || !isContainer(d.tree.Node(best)) || 5*d.goodOf(best) < 2*d.goodOf(at) {
		return []int{at}
	}
	var all []int
	last, class := 0, "" // number of parts up to the last one with enough good passages, and its class
	for c := at + 1; c < d.tree.End(at); c = d.tree.End(c) {
		good, isPart := d.goodOf(c), isContainer(d.tree.Node(c))
		if isPart && 3*good >= d.goodOf(best) && d.hasHeading(c) {
			all, last = all[:0], 0 // what precedes the headline is not the text
		}
		switch {
		case !isPart:
			all = append(all, c)
			last = len(all)
		case good > 0 && 6*good >= d.goodOf(best):
			all = append(all, c)
			last, class = len(all), attr(d.tree.Node(c), "class")
		case last > 0 && 3*d.between(c).link < d.between(c).text,
			last > 0 && class == attr(d.tree.Node(c), "class") && 3*d.between(c).link <= 2*d.between(c).text:
			all = append(all, c) // between parts of the text
		}
	}
	return all[:last]
}

// isSection reports whether a child is only a section of the text: a heading with text precedes it, or elements with its
// class and with text follow it.
func (d *document) isSection(parent, child int) bool {
	headings := false
	for i := parent + 1; i < child; i++ {
		if d.flags[i]&(gone|aside) != 0 {
			i = d.tree.End(i) - 1
			continue
		}
		headings = headings || isHeading(d.tree.Node(i).DataAtom) && d.between(i).text > 0
		if headings && d.adds[i] > 0 && !isHeading(d.tree.Node(i).DataAtom) {
			return true
		}
	}
	class := attr(d.tree.Node(child), "class")
	for c := d.tree.End(child); class != "" && c < d.tree.End(parent); c = d.tree.End(c) {
		if attr(d.tree.Node(c), "class") == class && d.goodOf(c) > 0 {
			return true
		}
	}
	return false
}

// isOneText reports whether the main text of a kind of page is one text, beside which others may be.
func isOneText(k kind) bool { return k == other || k == articleKind }

// heaviestChild returns the child with most good passages, -1 if there are none.
func (d *document) heaviestChild(i int) int {
	best, most := -1, int32(0)
	for c := i + 1; c < d.tree.End(i); c = d.tree.End(c) {
		if good := d.goodOf(c); good > most {
			best, most = c, good
		}
	}
	return best
}

// isContainer reports whether an element contains parts of a page, rather than a part of a text.
func isContainer(n *html.Node) bool {
	if n.Type != html.ElementNode {
		return false
	}
	switch n.DataAtom {
	case atom.P, atom.Ul, atom.Ol, atom.Dl, atom.Pre, atom.Blockquote, atom.Figure, atom.Li, atom.Dd, atom.Dt:
		return false
	}
	return styleOf(n.DataAtom) != inline && !isHeading(n.DataAtom)
}
