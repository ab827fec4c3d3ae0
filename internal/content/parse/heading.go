package parse

const maxHeadingMarkup = 16 << 10 // bytes of a heading's content that are read for its text

// A heading is the first h1 of a page with a text.
type heading struct {
	text  string
	open  bool
	start int // of its content
}

// openHeading records where an h1's content begins, if the page has no heading yet. Only then does the scanner report
// end tags of h1.
func (p *Parser) openHeading() {
	if h := &p.heading; p.depth == 0 && !h.open && h.text == "" {
		h.open, h.start = true, p.scan.pos
		p.scan.reportEnd(tagH1, 'h')
	}
}

// closeHeading sets the page's heading from the text up to here, if one is open.
func (p *Parser) closeHeading() {
	h := &p.heading
	if p.depth > 0 || !h.open {
		return
	}
	p.scan.ignoreEnd(tagH1, 'h')
	raw := p.scan.src[h.start:max(h.start, min(p.scan.start, h.start+maxHeadingMarkup))]
	h.open, h.text = false, collapse(p.text.content(p.visibleText(raw)), p.cfg.MaxTitle)
}
