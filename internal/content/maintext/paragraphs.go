package maintext

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// paragraphs wraps runs of prose without an element of their own, between other blocks or double line breaks, in p
// elements. The library looks for paragraphs, which many pages lack. Runs of links are not wrapped.
func paragraphs(doc *html.Node) {
	var boxes []*html.Node
	for n := range descendants(doc) {
		switch n.DataAtom {
		case atom.Div, atom.Section, atom.Article, atom.Main, atom.Body, atom.Center:
			boxes = append(boxes, n)
		}
	}
	for _, box := range boxes {
		wrapRuns(box)
	}
}

func wrapRuns(box *html.Node) {
	var run []*html.Node
	for n := box.FirstChild; n != nil; {
		next := n.NextSibling
		if isInline(n) {
			run = append(run, n)
		} else {
			wrap(box, run, n)
			run = run[:0]
		}
		n = next
	}
	wrap(box, run, nil)
}

func isInline(n *html.Node) bool {
	return n.Type == html.TextNode || n.Type == html.ElementNode && inline[n.Data] && n.FirstChild != nil
}

// wrap moves a run of siblings into a new p before the node before, if the run is prose.
func wrap(box *html.Node, run []*html.Node, before *html.Node) {
	total, links := 0, 0
	for _, n := range run {
		t, l := weighNode(n, false)
		total, links = total+t, links+l
	}
	if total < words || links*2 > total {
		return
	}
	p := &html.Node{Type: html.ElementNode, Data: "p", DataAtom: atom.P}
	for _, n := range run {
		box.RemoveChild(n)
		p.AppendChild(n)
	}
	box.InsertBefore(p, before)
}

// weighNode returns the weight of the text below n, and of its part in links.
func weighNode(n *html.Node, link bool) (total, links int) {
	if n.DataAtom == atom.Head || n.DataAtom == atom.Script {
		return 0, 0
	}
	if n.Type == html.TextNode {
		total = weigh(n.Data)
		if link {
			links = total
		}
		return total, links
	}
	for c := range n.ChildNodes() {
		t, l := weighNode(c, link || n.DataAtom == atom.A)
		total, links = total+t, links+l
	}
	return total, links
}
