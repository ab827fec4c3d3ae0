package kumo

import (
	"cmp"
	"fmt"
	"iter"

	"kumo/internal/base/weburl"
	"kumo/internal/content/fields/tree"
	"kumo/internal/content/parse"
)

// maxFound is how many elements a selector finds.
const maxFound = 10_000

// An Element is one of a page. It is good as long as its Page is.
type Element struct {
	page *Page
	tree *tree.Tree
	node int
	attr string // that its selector asks for, as a::attr(href) does
	own  bool   // its selector asks for the text without that of elements in it, as p::text does
}

// Find yields the elements of an HTML page that match a CSS selector, in the order of the page; none of another type.
// Scrapy's ::text and ::attr(NAME) at its end say what Text gives. It panics if css is no selector.
//
// The page's tree is made by the first call, in half a millisecond or so, and kept with the page. It has 100,000 nodes
// at most, and a selector finds 10,000 elements. One goroutine at a time may use a Page and its Elements.
func (p *Page) Find(css string) iter.Seq[Element] {
	s := selector("Find", css)
	return func(yield func(Element) bool) {
		if t := p.parsed(); t != nil {
			Element{page: p, tree: t}.each(s, yield)
		}
	}
}

func selector(who, css string) *tree.Selector {
	s, err := tree.Compile(css)
	if err != nil {
		panic(fmt.Sprintf("kumo: %s(%q): %v", who, css, err))
	}
	return s
}

// parsed is the page's tree; nil if it is no HTML.
func (p *Page) parsed() *tree.Tree {
	if p.tree == nil && parse.IsHTML(cmp.Or(p.sniffed, p.Type, "text/html")) {
		p.tree = tree.New(0).Parse(p.HTML(), false)
	}
	return p.tree
}

// Find yields the elements in an element that match: "> li" are its children.
func (e Element) Find(css string) iter.Seq[Element] {
	s := selector("Find", css)
	return func(yield func(Element) bool) { e.each(s, yield) }
}

func (e Element) each(s *tree.Selector, yield func(Element) bool) {
	e.tree.ResetSteps()
	for _, i := range e.tree.Find(s, e.node, maxFound) {
		if !yield(Element{page: e.page, tree: e.tree, node: i, attr: s.Take.Attr, own: s.Take.Own}) {
			return
		}
	}
}

// Name is the element's name, in lower case.
func (e Element) Name() string { return e.tree.Name(e.node) }

// Text is the element's text, and that of all in it but scripts and styles, white space collapsed; or what the selector
// asks for instead. It has 64 KiB at most.
func (e Element) Text() string {
	e.tree.ResetSteps()
	switch {
	case e.attr != "":
		return tree.Collapse(e.Attr(e.attr))
	case e.own:
		return e.tree.OwnText(e.node)
	}
	return e.tree.Text(e.node)
}

// Attr is an attribute's value, "" if the element has none of that name.
func (e Element) Attr(name string) string {
	v, _ := e.tree.Attr(e.node, name)
	return v
}

// URL is an attribute's value as an absolute URL, by the page's base; "" if it is none.
func (e Element) URL(name string) string {
	v, has := e.tree.Attr(e.node, name)
	if !has {
		return ""
	}
	u, err := e.page.resolve(v)
	if err != nil {
		return ""
	}
	return u
}

// HTML is what is in the element, as HTML of 64 KiB at most.
func (e Element) HTML() string {
	e.tree.ResetSteps()
	return e.tree.HTML(e.node)
}

// resolve makes a reference absolute, as links of the page are.
func (p *Page) resolve(ref string) (string, error) {
	base, err := weburl.Parse(p.URL)
	if err != nil {
		return "", err
	}
	if href := p.tree.Base(); href != "" {
		if b, err := base.Resolve(href); err == nil {
			base = b
		}
	}
	u, err := base.Resolve(ref)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}
