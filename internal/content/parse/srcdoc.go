package parse

import "bytes"

// maxInner limits the nesting depth of srcdoc documents.
const maxInner = 3

// srcdoc parses the document in an iframe's srcdoc attribute. Its default base URL is that of the enclosing document.
func (p *Parser) srcdoc() {
	raw, ok := p.scan.attr(attrSrcdoc)
	if !ok || p.depth == maxInner {
		return
	}
	doc := bytes.Clone(p.text.attr(raw))
	outer, outerText := p.document, p.text
	p.document = document{fallback: outer.base, base: outer.base, depth: outer.depth + 1, charset: utf8Charset}
	p.text = text{}
	p.text.init(utf8Charset, utf8Charset, doc)
	p.findBase(doc)
	p.scan.reset(doc, false)
	p.markup()
	p.document, p.text = outer, outerText
}

// noframes parses the alternative content of a frameset.
func (p *Parser) noframes() {
	if p.depth == maxInner || len(p.scan.content) == 0 {
		return
	}
	outer := p.document
	p.depth, p.hasBase, p.tentative, p.form, p.anchored.link = outer.depth+1, true, false, form{}, 0
	p.scan.reset(outer.scan.content, outer.scan.xml)
	p.markup()
	p.document = outer
}

// findBase finds the base URL of a short document in advance, so that the document is parsed once.
func (x *extractor) findBase(doc []byte) {
	if indexFold(doc, "<base") < 0 {
		return
	}
	touched := x.links.touched
	x.scan.reset(doc, false)
	for x.scan.next() && !x.hasBase {
		if x.scan.tag == tagBase && x.scan.space == inHTML && !x.scan.closing {
			x.text.reset()
			x.baseElement()
		}
	}
	x.links.touched = touched
	x.hasBase = true
}
