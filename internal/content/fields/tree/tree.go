// Package tree parses HTML and XML pages into trees, and finds elements in them by CSS selectors.
//
// The parser makes one pass. It applies the rules of the HTML standard that matter for real pages: void elements, raw
// text, implied end tags of paragraphs, items, options, rows and cells, and implied elements (html, head, body, tbody).
// Unlike a browser, it does not move misnested elements: each element occurs once, where it was written. So a tree
// takes time and memory linear in the page. Elements are in document order, and the descendants of an element are a
// contiguous range.
//
// XML preserves the case of names, needs explicit end tags, and has no such rules.
//
// A [Parser] bounds the number of nodes of a tree. Elements more than 512 levels deep become siblings, as in browsers.
// An element keeps at most 128 attributes. A Tree has a budget of steps that all its selectors share.
package tree

import (
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Limits of a tree.
const (
	maxDepth = 512
	maxAttrs = 128
	// MaxNodes is the default limit of elements and texts of a tree, about 20 MB of memory.
	MaxNodes = 100_000
)

// A Tree is a parsed page. Its nodes are numbered in document order; 0 is the document itself.
type Tree struct {
	Cut bool // the page exceeds the limit of nodes

	nodes []*html.Node
	at    []place
	spent int    // steps
	masks []mask // buffer of Find
}

// A place is the position of a node.
type place struct {
	parent, end  int32 // its parent; the index after its last descendant
	before, last int32 // elements: previous sibling, last child; 0: none
	class        string
}

// A Parser parses pages, one after the other. The next tree reuses the memory of the last one.
type Parser struct {
	max       int // nodes
	tree      Tree
	slabs     [][]html.Node
	attrs     [][]html.Attribute
	used      int // nodes
	usedAttrs int // used attributes of the last slab

	src           string
	pos           int
	xml           bool
	open          []openElement // the document and the open elements, innermost last
	paragraphs    int           // number of open paragraphs
	skippedLevels int           // elements that were closed because of the depth limit
	foreign       int           // number of open svg and math elements
	body          bool          // the body has begun
	head          bool          // the head is open
}

// New returns a parser of trees with at most max nodes; 0: MaxNodes.
func New(max int) *Parser {
	if max <= 0 {
		max = MaxNodes
	}
	return &Parser{max: max}
}

// An openElement is an element without an end tag so far.
type openElement struct {
	node int32
	name atom.Atom
	kind kind
}

const slab = 256 // nodes or attributes per allocation

// Parse parses a page in UTF-8. The tree is valid until the next call.
func (p *Parser) Parse(src string, xml bool) *Tree {
	p.reset(src, xml)
	p.add(html.Node{Type: html.DocumentNode})
	p.open = append(p.open, openElement{})
	for p.pos < len(p.src) && !p.tree.Cut {
		p.next()
	}
	if !p.xml && !p.tree.Cut {
		p.ensureBody()
	}
	for _, o := range p.open {
		p.tree.at[o.node].end = int32(len(p.tree.nodes))
	}
	return &p.tree
}

func (p *Parser) reset(src string, xml bool) {
	t := &p.tree
	clear(t.nodes)
	clear(t.at)
	*t = Tree{nodes: t.nodes[:0], at: t.at[:0], masks: t.masks[:0]}
	*p = Parser{max: p.max, tree: *t, slabs: p.slabs, attrs: p.attrs[:min(len(p.attrs), 1)], src: src, xml: xml,
		open: p.open[:0]}
	const most = 8192 / slab // slabs that are kept for the next page
	if len(p.slabs) > most {
		p.slabs = p.slabs[:most]
	}
}

// add adds a node as the last child of the innermost open element.
func (p *Parser) add(n html.Node) int32 {
	t := &p.tree
	if len(t.nodes) >= p.max {
		t.Cut = true
		return -1
	}
	if p.used/slab == len(p.slabs) {
		p.slabs = append(p.slabs, make([]html.Node, slab))
	}
	node := &p.slabs[p.used/slab][p.used%slab]
	*node = n
	p.used++
	i := int32(len(t.nodes))
	t.nodes, t.at = append(t.nodes, node), append(t.at, place{end: i + 1})
	if len(p.open) == 0 {
		return i
	}
	up := p.top().node
	parent := t.nodes[up]
	t.at[i].parent = up
	node.Parent, node.PrevSibling = parent, parent.LastChild
	if parent.LastChild == nil {
		parent.FirstChild = node
	} else {
		parent.LastChild.NextSibling = node
	}
	parent.LastChild = node
	return i
}

// push adds an element and opens it.
func (p *Parser) push(name string, a atom.Atom, attrs []html.Attribute) {
	if len(p.open) > maxDepth {
		p.pop()
		p.skippedLevels++
	}
	i := p.element(name, a, attrs)
	if i < 0 {
		return
	}
	is := kinds[a]
	p.open = append(p.open, openElement{i, a, is})
	if is&foreign != 0 {
		p.foreign++
	}
	if a == atom.P {
		p.paragraphs++
	}
}

// element adds an element without opening it.
func (p *Parser) element(name string, a atom.Atom, attrs []html.Attribute) int32 {
	i := p.add(html.Node{Type: html.ElementNode, Data: name, DataAtom: a})
	if i < 0 {
		return i
	}
	p.setAttrs(i, attrs)
	up := &p.tree.at[p.tree.at[i].parent]
	p.tree.at[i].before, up.last = up.last, i
	return i
}

// setAttrs sets the attributes of an element.
func (p *Parser) setAttrs(i int32, attrs []html.Attribute) {
	p.tree.nodes[i].Attr = attrs
	for j := range attrs {
		if attrs[j].Key == "class" {
			p.tree.at[i].class = attrs[j].Val
		}
	}
}

func (p *Parser) top() openElement { return p.open[len(p.open)-1] }

func (p *Parser) pop() {
	o := p.top()
	p.open = p.open[:len(p.open)-1]
	p.tree.at[o.node].end = int32(len(p.tree.nodes))
	if o.kind&foreign != 0 {
		p.foreign--
	}
	if o.name == atom.P {
		p.paragraphs--
	}
	if o.name == atom.Head {
		p.head = false
	}
}

// text adds the text between two tags.
func (p *Parser) text(s string) {
	if s == "" {
		return
	}
	if !p.xml && !p.body && (!p.head || p.top().name == atom.Head) {
		if isBlank(s) {
			return
		}
		p.ensureBody()
	}
	if p.xml && len(p.open) == 1 {
		return // outside of the root element
	}
	p.add(html.Node{Type: html.TextNode, Data: s})
}

func isBlank(s string) bool { return strings.Trim(s, " \t\r\n\f") == "" }

// ensureBody opens html and body, unless they are open.
func (p *Parser) ensureBody() {
	if p.body {
		return
	}
	p.ensureHead()
	if p.head {
		for p.head {
			p.pop()
		}
	}
	p.body = true
	p.push("body", atom.Body, nil)
}

// ensureHead opens html and head at the beginning of the document.
func (p *Parser) ensureHead() {
	if len(p.open) == 1 {
		p.push("html", atom.Html, nil)
	}
	if len(p.open) == 2 && p.tree.nodes[p.top().node].FirstChild == nil {
		p.head = true
		p.push("head", atom.Head, nil)
	}
}
