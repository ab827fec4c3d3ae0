package parse

import "bytes"

const (
	maxAnchorMarkup = 16 << 10 // bytes of an anchor's content that are read for its text
	maxAnchorText   = 256      // bytes of the text that are kept
)

// openAnchor records where the content of a link's anchor begins.
func (p *Parser) openAnchor(link int) {
	if p.cfg.AnchorText {
		p.anchored.link, p.anchored.start = link, p.scan.pos
	}
}

// closeAnchor sets the text of the open anchor, if there is one.
func (p *Parser) closeAnchor() {
	if p.anchored.link == 0 {
		return
	}
	raw := p.scan.src[p.anchored.start:max(p.anchored.start, min(p.scan.start, p.anchored.start+maxAnchorMarkup))]
	p.links.setText(p.anchored.link, collapse(p.text.content(p.visibleText(raw)), maxAnchorText))
	p.anchored.link = 0
}

// visibleText returns the text of markup without tags. An image contributes its alternative text.
func (x *extractor) visibleText(markup []byte) (text []byte) {
	s := scanner{src: markup, xml: x.scan.xml, prefixes: x.scan.prefixes}
	for i := 0; ; {
		from := i
		i = past(markup, i, '<')
		if i == len(markup) {
			return append(text, bytes.TrimSuffix(markup[from:], []byte("<"))...)
		}
		text = append(text, markup[from:i-1]...)
		end, known := s.construct(i)
		switch {
		case end == i:
			text = append(text, '<')
		case known && s.tag == tagImg && !s.closing:
			alt, _ := s.attr(attrAlt)
			text = append(append(append(text, ' '), alt...), ' ')
		case bytes.HasPrefix(markup[i:], []byte("br")):
			text = append(text, ' ')
		}
		i = end
	}
}
