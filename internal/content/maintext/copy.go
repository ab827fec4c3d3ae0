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
	formulaAttr  = "data-kumo-formula"
	taskAttr     = "data-kumo-task"

	imageRune = '\uFDD3' // the text of an image, so that it is not treated as empty
	imageMark = string(imageRune)
)

const (
	maxDepth  = 64      // of the copy; deeper elements are unwrapped
	maxCopies = 60_000  // nodes for Markdown, because the library's time is not linear
	maxCopied = 1 << 20 // bytes of text
	maxPlace  = 2 << 10 // bytes of a reference
)

var emphases = map[atom.Atom]string{atom.B: "strong", atom.Strong: "strong", atom.Em: "em", atom.I: "em", atom.Del: "del",
	atom.S: "del", atom.Strike: "del"}

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
		if n.DataAtom == atom.Math || n.DataAtom == atom.Script {
			if tex := d.formulaOf(n); tex != "" {
				d.bytes += len(tex)
				to.AppendChild(inlineMark(html.Attribute{Key: formulaAttr, Val: tex}))
				return
			}
		}
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
	case atom.Input:
		return taskOf(n)
	case atom.A, atom.Ol, atom.Td, atom.Th:
		c.Attr = n.Attr
	case atom.Pre:
		if lang := languageOf(n); lang != "" {
			c.Attr = []html.Attribute{{Key: "class", Val: "language-" + lang}}
		}
	case atom.B, atom.Strong, atom.Em, atom.I, atom.Del, atom.S, atom.Strike:
		rename(c, atom.Span, html.Attribute{Key: emphasisAttr, Val: emphases[n.DataAtom]})
	case atom.Big, atom.Font, atom.Nobr, atom.Small, atom.Tt, atom.U, atom.Ins, atom.Mark, atom.Span, atom.Script, atom.Wbr,
		atom.Picture, atom.Source, atom.Link, atom.Meta, atom.Math:
		return nil
	case atom.Table:
		if d.flags[i]&layout != 0 {
			rename(c, d.boxOf(i))
		}
	case atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr:
		if d.isLaidOut(i) {
			rename(c, d.boxOf(i))
		}
	}
	if styleOf(n.DataAtom) == cell && d.isLaidOut(i) {
		rename(c, d.boxOf(i))
	}
	return c
}

// boxOf returns the element for a part of a table for layout. In code it must not begin a line.
func (d *document) boxOf(i int) atom.Atom {
	if d.flags[i]&pre != 0 {
		return atom.Span
	}
	return atom.Div
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

// lazyAttrs are the attributes with the address of an image that a script loads.
var lazyAttrs = []string{"src", "data-src", "data-lazy-src", "data-original"}

func imageOf(n *html.Node) *html.Node {
	for _, key := range lazyAttrs {
		src := strings.TrimSpace(attr(n, key))
		if src != "" && len(src) <= maxPlace && !strings.HasPrefix(src, "data:") {
			return inlineMark(html.Attribute{Key: imageAttr, Val: src},
				html.Attribute{Key: altAttr, Val: collapse(attr(n, "alt"), maxField)})
		}
	}
	return nil
}

// inlineMark returns a span with attributes. It has a text, so that it is not treated as empty.
func inlineMark(attrs ...html.Attribute) *html.Node {
	c := &html.Node{Type: html.ElementNode}
	rename(c, atom.Span, attrs...)
	c.AppendChild(&html.Node{Type: html.TextNode, Data: imageMark})
	return c
}

// taskOf returns the state of a task, if a checkbox is the first content of an item; otherwise nil.
func taskOf(n *html.Node) *html.Node {
	if !strings.EqualFold(attr(n, "type"), "checkbox") {
		return nil
	}
	for at := n; at.Parent != nil; at = at.Parent {
		for before := at.PrevSibling; before != nil; before = before.PrevSibling {
			if before.Type != html.TextNode || strings.TrimSpace(before.Data) != "" {
				return nil
			}
		}
		switch at.Parent.DataAtom {
		case atom.Li:
			state := "[ ] "
			if has(n, "checked") {
				state = "[x] "
			}
			return inlineMark(html.Attribute{Key: taskAttr, Val: state})
		case atom.P, atom.Label, atom.Span:
		default:
			return nil
		}
	}
	return nil
}
