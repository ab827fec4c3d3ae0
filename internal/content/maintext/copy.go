package maintext

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Emphasis and images become spans with these attributes in the copy of the main text, so that they can be nested in
// any way.
const (
	emphasisAttr = "data-kumo-em" // strong or em
	imageAttr    = "data-kumo-src"
	altAttr      = "data-kumo-alt"

	imageRune = '\uFDD3' // the text of an image, so that it is not treated as empty
	imageMark = string(imageRune)
)

const (
	maxDepth  = 64      // of the copy; deeper elements are unwrapped
	maxCopies = 60_000  // nodes for Markdown, because the library's time is not linear
	maxCopied = 1 << 20 // bytes of text
	maxPlace  = 2 << 10 // bytes of a reference
)

var emphases = map[atom.Atom]string{atom.B: "strong", atom.Strong: "strong", atom.Em: "em", atom.I: "em"}

// A copier copies the nodes that the writer wrote, with the attributes that Markdown needs.
type copier struct {
	*document
	nodes, bytes int
	full         bool // the limits were exceeded
}

// copyTo appends a copy of a node and its descendants to a node.
func (d *copier) copyTo(to *html.Node, i, depth int) {
	if d.skips(i) {
		return
	}
	n := d.tree.Node(i)
	d.nodes++
	if n.Type == html.TextNode {
		d.bytes += len(n.Data)
	}
	if d.nodes > maxCopies || d.bytes > maxCopied {
		d.full = true
		return
	}
	switch n.Type {
	case html.TextNode:
		text := n.Data
		if d.flags[i]&pre != 0 {
			text = marked(text)
		}
		to.AppendChild(&html.Node{Type: html.TextNode, Data: text})
		return
	case html.ElementNode:
		if c := d.copied(i, n); c != nil && depth < maxDepth {
			to.AppendChild(c)
			to, depth = c, depth+1
		}
	}
	end := d.tree.End(i)
	for c := i + 1; c < end && !d.full; c = d.tree.End(c) {
		d.copyTo(to, c, depth)
	}
}

// copied returns a copy of an element, nil if only its content is copied.
func (d *document) copied(i int, n *html.Node) *html.Node {
	c := &html.Node{Type: html.ElementNode, DataAtom: n.DataAtom, Data: n.Data}
	if d.flags[i]&inMath != 0 {
		return nil
	}
	switch n.DataAtom {
	case atom.Img:
		return imageOf(n)
	case atom.A, atom.Ol, atom.Td, atom.Th, atom.Code, atom.Pre:
		c.Attr = n.Attr
	case atom.B, atom.Strong, atom.Em, atom.I:
		rename(c, atom.Span, html.Attribute{Key: emphasisAttr, Val: emphases[n.DataAtom]})
	case atom.Big, atom.Font, atom.Nobr, atom.S, atom.Small, atom.Strike, atom.Tt, atom.U, atom.Ins, atom.Mark, atom.Span,
		atom.Input, atom.Wbr, atom.Picture, atom.Source, atom.Link, atom.Meta, atom.Math:
		return nil
	case atom.Table:
		if d.flags[i]&layout != 0 {
			rename(c, atom.Div)
		}
	case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr:
		if d.isLaidOut(i) {
			rename(c, atom.Div)
		}
	}
	if styleOf(n.DataAtom) == cell && d.isLaidOut(i) {
		rename(c, atom.Div)
	}
	return c
}

// isLaidOut reports whether a part of a table belongs to a table for layout.
func (d *document) isLaidOut(i int) bool {
	for i = d.tree.Parent(i); i > 0; i = d.tree.Parent(i) {
		switch d.tree.Node(i).DataAtom {
		case atom.Table:
			return d.flags[i]&layout != 0
		case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr:
		default:
			return true
		}
	}
	return true
}

func imageOf(n *html.Node) *html.Node {
	src := strings.TrimSpace(attr(n, "src"))
	if src == "" || len(src) > maxPlace || strings.HasPrefix(src, "data:") {
		return nil
	}
	c := &html.Node{}
	c.Type = html.ElementNode
	rename(c, atom.Span, html.Attribute{Key: imageAttr, Val: src},
		html.Attribute{Key: altAttr, Val: collapse(attr(n, "alt"), maxField)})
	c.AppendChild(&html.Node{Type: html.TextNode, Data: imageMark})
	return c
}
