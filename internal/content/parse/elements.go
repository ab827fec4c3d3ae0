package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// A reference is a link as it stands on a page.
type reference struct {
	url       []byte
	kind      page.Kind
	rel, lang []byte
}

// element takes the links of an HTML element.
func (p *Parser) element() {
	switch p.scan.tag {
	case tagA, tagArea:
		p.anchor(attrHref)
	case tagLink:
		p.linkElement()
	case tagImg, tagImage: // the standard reads image as img
		p.image()
	case tagScript:
		p.embed(attrSrc, page.Script)
		p.script()
	case tagFrame, tagIframe:
		p.frame()
	case tagInput:
		p.control()
		if p.keyword(attrType) == "image" {
			p.embed(attrSrc, page.Image)
		}
	case tagButton, tagSelect, tagTextarea:
		p.control()
	case tagForm:
		p.openForm()
	case tagSource:
		p.embed(attrSrc, page.Media)
		p.srcset(attrSrcset)
	case tagVideo:
		p.embed(attrSrc, page.Media)
		p.embed(attrPoster, page.Image)
	case tagAudio, tagTrack, tagSound:
		p.embed(attrSrc, page.Media)
	case tagEmbed:
		p.embed(attrSrc, page.Object)
	case tagObject:
		p.embed(attrData, page.Object)
	case tagBody, tagTable, tagCell:
		p.embed(attrBackground, page.Image)
	case tagBlockquote, tagCite:
		p.embed(attrCite, page.Cite)
	case tagRoot:
		p.embed(attrManifest, page.Resource)
	case tagStyle:
		p.styles(p.scan.content)
	case tagNoframes:
		p.noframes()
	case tagH1:
		p.openHeading()
	case tagTitle:
		if !p.titled && p.inner == 0 {
			p.title, p.titled = p.scan.content, true
		}
	}
}

// svgElement takes the links of an SVG element. href has precedence over its old name. One that names only a part of
// the document itself makes a browser fetch nothing.
func (p *Parser) svgElement() {
	href := attrHref
	if _, ok := p.scan.attr(href); !ok {
		href = attrXlinkHref
	}
	switch p.scan.tag {
	case tagA:
		p.anchor(href)
	case tagImage, tagUse:
		if raw, _ := p.scan.attr(href); !bytes.HasPrefix(trimLeft(raw), []byte("#")) {
			p.embed(href, page.Image)
		}
	case tagScript:
		p.embed(href, page.Script)
	case tagStyle:
		p.foreignStyle()
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
	if p.anchored.link != 0 {
		p.closeAnchor()
	}
	ref, ok := p.value(a)
	if !ok {
		return
	}
	r := &reference{url: ref, kind: page.Anchor}
	more := p.scan.has(1<<attrRel | 1<<attrHrefLang | 1<<attrPing)
	if more {
		r.rel, _ = p.value(attrRel)
		r.lang, _ = p.value(attrHrefLang)
	}
	link := p.link(r)
	if p.scan.tag == tagA {
		p.openAnchor(link)
	}
	if more && p.scan.space == inHTML {
		p.pings()
	}
}

// lazyAttrs are the attributes in which scripts find what they load later.
const lazyAttrs = 1<<numAttrs - 1<<firstLazy

// lazy takes what a script will load into an element.
func (p *Parser) lazy() {
	for a := firstLazy; a < numAttrs; a++ {
		switch raw, ok := p.scan.attr(a); {
		case !ok:
		case a == attrDataSrcset, a == attrDataLazySrcset:
			p.srcset(a)
		case isLazyURL(raw):
			p.embed(a, p.scan.tag.lazyKind())
		}
	}
}

// isLazyURL reports whether the value is a URL: a script may have anything else in its attributes.
func isLazyURL(value []byte) bool {
	return bytes.ContainsAny(value, "./") && !bytes.ContainsAny(value, "{}<>()\"' \t\r\n") && value[0] != '#'
}

// lazyKind is what a script loads into an element of the name.
func (t tag) lazyKind() page.Kind {
	switch t {
	case tagFrame, tagIframe:
		return page.Frame
	case tagScript:
		return page.Script
	case tagVideo, tagAudio, tagSource, tagTrack:
		return page.Media
	}
	return page.Image
}

func (p *Parser) pings() {
	urls, ok := p.value(attrPing)
	if !ok {
		return
	}
	for url := range bytes.FieldsFuncSeq(urls, func(r rune) bool { return r < ' '+1 && isSpace(byte(r)) }) {
		p.link(&reference{url: url, kind: page.Ping})
	}
}

// embed takes a link that is none when it is empty.
func (p *Parser) embed(a attr, kind page.Kind) {
	if ref, ok := p.value(a); ok && len(ref) > 0 {
		p.link(&reference{url: ref, kind: kind})
	}
}

func (p *Parser) image() {
	p.embed(attrSrc, page.Image)
	p.srcset(attrSrcset)
	p.embed(attrLowSrc, page.Image)
	p.embed(attrDynsrc, page.Media)
	p.embed(attrLongDesc, page.Cite)
}

func (p *Parser) frame() {
	p.embed(attrSrc, page.Frame)
	p.embed(attrLongDesc, page.Cite)
	if p.scan.tag == tagIframe {
		p.srcdoc()
	}
}

func (p *Parser) srcset(a attr) {
	set, ok := p.value(a)
	if !ok {
		return
	}
	for c := range candidates(set) {
		p.link(&reference{url: c.url, kind: page.Image})
	}
}

func (p *Parser) linkElement() {
	ref, ok := p.value(attrHref)
	rel, _ := p.value(attrRel)
	if ok && len(ref) > 0 {
		if kind, ok := relKind(rel, page.Alternate); ok {
			lang, _ := p.value(attrHrefLang)
			p.link(&reference{ref, kind, rel, lang})
		}
	}
	p.srcset(attrImageSrcset)
}

// link takes a link in the document's markup and returns its number. Where the document is not in UTF-8, its query is
// in the document's charset.
func (p *Parser) link(r *reference) int {
	if p.text.encoder != nil {
		r.url = p.text.query(r.url)
	}
	if p.raw != nil {
		p.raw(r.url)
		return 0
	}
	return p.links.add(p.base, r)
}

// baseElement takes the base URL from the first base element that has one. It holds for the links before it too, so if
// there are any, the document is read again.
func (p *Parser) baseElement() (again bool) {
	ref, ok := p.value(attrHref)
	if !ok || p.based || p.scan.inTemplate() {
		return false
	}
	p.based = true
	base, err := p.fallback.Resolve(string(ref))
	if err != nil || base == p.fallback || base.Scheme() == "data" || base.Scheme() == "javascript" {
		return false
	}
	p.base = base
	return p.links.touched
}
