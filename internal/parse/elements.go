package parse

import "kumo/internal/page"

// element takes the links of an HTML element.
func (p *Parser) element() {
	switch p.scan.tag {
	case tagA, tagArea:
		p.anchor(attrHref)
	case tagLink:
		p.linkElement()
	case tagImg, tagImage: // the standard reads image as img
		p.embed(attrSrc, page.Image)
		p.srcset()
	case tagScript:
		p.embed(attrSrc, page.Script)
	case tagFrame, tagIframe:
		p.embed(attrSrc, page.Frame)
	case tagInput:
		if p.keyword(attrType) == "image" {
			p.embed(attrSrc, page.Image)
		}
	case tagSource:
		p.embed(attrSrc, page.Media)
		p.srcset()
	case tagVideo:
		p.embed(attrSrc, page.Media)
		p.embed(attrPoster, page.Image)
	case tagAudio, tagTrack:
		p.embed(attrSrc, page.Media)
	case tagEmbed:
		p.embed(attrSrc, page.Object)
	case tagObject:
		p.embed(attrData, page.Object)
	case tagBody:
		p.embed(attrBackground, page.Image)
	case tagTitle:
		if !p.titled {
			p.title, p.titled = p.scan.content, true
		}
	}
}

// svgElement takes the links of an SVG element. href has precedence over its old name.
func (p *Parser) svgElement() {
	href := attrHref
	if _, ok := p.scan.attr(href); !ok {
		href = attrXlinkHref
	}
	switch p.scan.tag {
	case tagA:
		p.anchor(href)
	case tagImage:
		p.embed(href, page.Image)
	case tagScript:
		p.embed(href, page.Script)
	}
}

// value returns an attribute's value as UTF-8 with its character references replaced.
func (p *Parser) value(a attr) (value []byte, ok bool) {
	raw, ok := p.scan.attr(a)
	if !ok {
		return nil, false
	}
	return p.text.attr(raw), true
}

// anchor takes a link that may be empty, as which it leads to the page itself.
func (p *Parser) anchor(a attr) {
	if ref, ok := p.value(a); ok {
		rel, _ := p.value(attrRel)
		p.link(ref, page.Anchor, rel)
	}
}

// embed takes a link that is none when it is empty.
func (p *Parser) embed(a attr, kind page.Kind) {
	if ref, ok := p.value(a); ok && len(ref) > 0 {
		p.link(ref, kind, nil)
	}
}

func (p *Parser) srcset() {
	set, ok := p.value(attrSrcset)
	if !ok {
		return
	}
	for ref := range candidates(set) {
		p.link(ref, page.Image, nil)
	}
}

func (p *Parser) linkElement() {
	ref, ok := p.value(attrHref)
	if !ok || len(ref) == 0 {
		return
	}
	rel, _ := p.value(attrRel)
	if kind, ok := relKind(rel, page.Alternate); ok {
		p.link(ref, kind, rel)
	}
}

// link takes a link in the document's markup. Where the document is not in UTF-8, its query is in the document's charset.
func (p *Parser) link(ref []byte, kind page.Kind, rel []byte) {
	p.links.add(p.base, p.text.query(ref), kind, rel)
}

// baseElement takes the base URL from the first base element that has one. It holds for the links before it too, so if there
// are any, the document is read again.
func (p *Parser) baseElement() (again bool) {
	ref, ok := p.value(attrHref)
	if !ok || p.based {
		return false
	}
	p.based = true
	base, err := p.self.Resolve(string(ref))
	if err != nil || base == p.self || base.Scheme() == "data" || base.Scheme() == "javascript" {
		return false
	}
	p.base = base
	return p.links.touched
}

func (p *Parser) metaElement() (again bool) {
	if p.tentative {
		again = p.metaCharset()
	}
	if !again && p.keyword(attrHTTPEquiv) == "refresh" {
		content, _ := p.value(attrContent)
		if _, ref, ok := parseRefresh(content); ok && len(ref) > 0 {
			p.link(ref, page.Refresh, nil)
		}
	}
	return again
}

// metaCharset changes the charset to the one that a meta element names. That was a guess only, and everything so far may have
// been read wrongly, the base URL too.
func (p *Parser) metaCharset() (again bool) {
	label, ok := p.value(attrCharset)
	if !ok && p.keyword(attrHTTPEquiv) == "content-type" {
		content, _ := p.value(attrContent)
		label, ok = charsetIn(content)
	}
	if !ok {
		return false
	}
	cs, ok := metaLabel(label)
	if !ok {
		return false
	}
	p.tentative = false
	if cs.name == p.charset.name {
		return false
	}
	p.charset, p.base, p.based = cs, p.self, false
	return true
}

// keyword returns an attribute's value in lower case if it is short enough to be one of those compared with here.
func (p *Parser) keyword(a attr) string {
	value, _ := p.value(a)
	var room [maxName]byte
	switch string(lower(&room, value)) {
	case "refresh":
		return "refresh"
	case "content-type":
		return "content-type"
	case "image":
		return "image"
	}
	return ""
}
