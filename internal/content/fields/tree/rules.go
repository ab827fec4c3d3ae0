package tree

import (
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A kind is a set of properties of an element in the HTML standard.
type kind uint16

const (
	void   kind = 1 << iota // it has no content
	raw                     // its content is text
	inHead                  // allowed in the head
	endsP                   // its start tag closes a paragraph
	heading
	barrier  // end tags and list items inside do not close elements outside
	rowGroup // tbody, thead, tfoot
	cell
	tablePart // part of a table, or a barrier outside of tables: its end tag passes other barriers
	inline    // other end tags close it, and its own closes only inline elements
	list
	foreign // SVG and MathML, in which any element may close itself
)

var kinds = func() map[atom.Atom]kind {
	kinds := map[atom.Atom]kind{}
	for is, all := range map[kind][]atom.Atom{
		void: {atom.Area, atom.Base, atom.Basefont, atom.Bgsound, atom.Br, atom.Col, atom.Embed, atom.Frame, atom.Hr,
			atom.Image,
			atom.Img, atom.Input, atom.Keygen, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr},
		raw: {atom.Script, atom.Style, atom.Title, atom.Textarea, atom.Xmp, atom.Iframe, atom.Noembed, atom.Noframes},
		inHead: {atom.Base, atom.Basefont, atom.Bgsound, atom.Link, atom.Meta, atom.Noframes, atom.Noscript, atom.Script,
			atom.Style, atom.Template, atom.Title},
		endsP: {atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir,
			atom.Div, atom.Dl, atom.Fieldset, atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.H1, atom.H2, atom.H3,
			atom.H4, atom.H5, atom.H6, atom.Header, atom.Hgroup, atom.Hr, atom.Listing, atom.Main, atom.Menu, atom.Nav, atom.Ol,
			atom.P, atom.Plaintext, atom.Pre, atom.Section, atom.Summary, atom.Table, atom.Ul, atom.Xmp, atom.Li, atom.Dd,
			atom.Dt},
		heading: {atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6},
		barrier: {atom.Applet, atom.Caption, atom.Html, atom.Table, atom.Td, atom.Th, atom.Marquee, atom.Object,
			atom.Template, atom.Body},
		rowGroup: {atom.Tbody, atom.Thead, atom.Tfoot},
		cell:     {atom.Td, atom.Th},
		tablePart: {atom.Table, atom.Caption, atom.Colgroup, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th,
			atom.Template, atom.Object, atom.Applet, atom.Marquee},
		inline: {atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Big, atom.Cite, atom.Code, atom.Data, atom.Dfn, atom.Em,
			atom.Font, atom.I, atom.Kbd, atom.Label, atom.Mark, atom.Nobr, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span,
			atom.Strike, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.Tt, atom.U, atom.Var, atom.Ins, atom.Del},
		list:    {atom.Ul, atom.Ol, atom.Menu, atom.Dl},
		foreign: {atom.Svg, atom.Math},
	} {
		for _, a := range all {
			kinds[a] |= is
		}
	}
	return kinds
}()

// start processes a start tag of HTML.
func (p *Parser) start(name string, a atom.Atom, attrs []html.Attribute, selfClosing bool) {
	is := kinds[a]
	if !p.openImplied(a, is, attrs) {
		return
	}
	if p.foreign > 0 {
		if is&endsP == 0 { // the start tags that close a paragraph also end SVG and MathML
			p.push(name, a, attrs)
			if selfClosing && !p.tree.Cut {
				p.pop()
			}
			return
		}
		for p.foreign > 0 {
			p.pop()
		}
	}
	p.closeImplied(a, is)
	switch {
	case p.tree.Cut:
	case is&void != 0, selfClosing && is&foreign != 0:
		p.element(name, a, attrs)
	case is&raw != 0:
		p.push(name, a, attrs)
		if !p.tree.Cut {
			p.raw(name, a)
			p.pop()
		}
	default:
		p.push(name, a, attrs)
	}
}

// openImplied opens the implied parents of a tag. It reports whether the tag creates an element.
func (p *Parser) openImplied(a atom.Atom, is kind, attrs []html.Attribute) bool {
	switch a {
	case atom.Html:
		if len(p.open) == 1 && !p.body {
			p.push("html", a, attrs)
		}
		return false
	case atom.Head, atom.Body, atom.Frameset:
		if !p.body {
			if a == atom.Head {
				p.ensureHead()
			} else {
				p.ensureBody()
			}
			if o := p.top(); len(p.tree.nodes[o.node].Attr) == 0 && (o.name == atom.Head || o.name == atom.Body) {
				p.setAttrs(o.node, attrs)
			}
		}
		return false
	}
	switch {
	case p.body:
	case is&inHead != 0:
		if p.ensureHead(); !p.head {
			p.ensureBody()
		}
	case !p.head || p.top().name == atom.Head:
		p.ensureBody()
	}
	return true
}

// closeImplied closes the elements that a start tag ends.
func (p *Parser) closeImplied(a atom.Atom, is kind) {
	switch a {
	case atom.Li:
		p.endItem(atom.Li, atom.Li)
	case atom.Dd, atom.Dt:
		p.endItem(atom.Dd, atom.Dt)
	case atom.Option, atom.Optgroup:
		for t := p.top().name; t == atom.Option || t == atom.Optgroup && a == atom.Optgroup; t = p.top().name {
			p.pop()
		}
	case atom.Rp, atom.Rt:
		for t := p.top().name; t == atom.Rp || t == atom.Rt; t = p.top().name {
			p.pop()
		}
	case atom.Col, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Td, atom.Th, atom.Caption, atom.Colgroup:
		p.inTable(a, is)
		return
	case atom.A:
		p.endLink()
	case atom.Button:
		p.popTo(atom.Button)
	}
	if is&endsP != 0 && p.paragraphs > 0 {
		p.popTo(atom.P)
	}
	if is&heading != 0 && p.top().kind&heading != 0 {
		p.pop()
	}
}

// endItem closes the previous item of the same list.
func (p *Parser) endItem(a, b atom.Atom) {
	for i := len(p.open) - 1; i > 0; i-- {
		switch o := p.open[i]; {
		case o.name == a || o.name == b:
			p.popBelow(i)
			return
		case o.kind&(barrier|list) != 0:
			return
		}
	}
}

// endLink closes an open link if only inline elements are open in it.
func (p *Parser) endLink() {
	for i := len(p.open) - 1; i > 0 && p.open[i].kind&inline != 0; i-- {
		if p.open[i].name == atom.A {
			p.popBelow(i)
			return
		}
	}
}

// inTable closes the open elements of a table down to the parent of a row, a cell or a row group, and opens missing
// parents. Outside of a table, it does nothing: the element is kept.
func (p *Parser) inTable(a atom.Atom, is kind) {
	table := len(p.open) - 1
	for p.open[table].name != atom.Table {
		if table == 0 || p.open[table].name == atom.Template {
			return
		}
		table--
	}
	keep := table + 1 // index of the first element to close
	for ; keep < len(p.open); keep++ {
		o := p.open[keep]
		if !(o.kind&rowGroup != 0 && (a == atom.Tr || is&cell != 0) || o.name == atom.Tr && is&cell != 0 ||
			o.name == atom.Colgroup && a == atom.Col) {
			break
		}
	}
	p.popBelow(keep)
	if p.top().name == atom.Table {
		switch {
		case a == atom.Tr || is&cell != 0:
			p.push("tbody", atom.Tbody, nil)
		case a == atom.Col:
			p.push("colgroup", atom.Colgroup, nil)
		}
	}
	if is&cell != 0 && p.top().kind&rowGroup != 0 {
		p.push("tr", atom.Tr, nil)
	}
}

// popTo closes the innermost element with the name, and all elements in it.
func (p *Parser) popTo(a atom.Atom) {
	for i := len(p.open) - 1; i > 0; i-- {
		switch o := p.open[i]; {
		case o.name == a:
			p.popBelow(i)
			return
		case o.kind&barrier != 0 || a == atom.P && o.name == atom.Button:
			return
		}
	}
}

// popBelow closes the i-th open element, and all elements in it.
func (p *Parser) popBelow(i int) {
	for len(p.open) > i {
		p.pop()
	}
}

// close processes an end tag of HTML.
func (p *Parser) close(name string, a atom.Atom) {
	is := kinds[a]
	switch {
	case a == atom.Html || a == atom.Body:
		return // content after the end tag is still part of the element
	case a == atom.Br:
		p.start(name, a, nil, false)
		return
	case a == atom.P && p.paragraphs == 0 && p.body: // it creates a paragraph
		p.element(name, a, nil)
		return
	case is&void != 0:
		return
	}
	for i := len(p.open) - 1; i > 0; i-- {
		o := p.open[i]
		if o.name == a && (a != 0 || p.tree.nodes[o.node].Data == name) || is&o.kind&heading != 0 {
			if p.skippedLevels > 0 && i != len(p.open)-1 {
				break
			}
			p.popBelow(i)
			return
		}
		if o.name == atom.Table || o.kind&barrier != 0 && is&tablePart == 0 ||
			is&inline != 0 && o.kind&inline == 0 && a != 0 {
			break
		}
	}
	p.skippedLevels = max(0, p.skippedLevels-1)
}

// closeXML closes the innermost element with the name, and all elements in it.
func (p *Parser) closeXML(name string) {
	for i := len(p.open) - 1; i > 0; i-- {
		if p.tree.nodes[p.open[i].node].Data == name {
			if p.skippedLevels > 0 && i != len(p.open)-1 {
				break
			}
			p.popBelow(i)
			return
		}
	}
	p.skippedLevels = max(0, p.skippedLevels-1)
}
