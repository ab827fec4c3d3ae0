package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// A reference is a link of a page, not yet resolved.
type reference struct {
	url       []byte
	kind      page.Kind
	rel, lang []byte
}

// element extracts the links of an HTML element.
func (p *Parser) element() {
	switch p.scan.tag {
	case tagA, tagArea:
		p.anchor(attrHref)
	case tagLink:
		p.linkElement()
	case tagImg, tagImage: // the standard treats image as img
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
		if !p.titled && p.depth == 0 {
			p.title, p.titled = p.scan.content, true
		}
	}
}

// svgElement extracts the links of an SVG element. href takes precedence over xlink:href. A reference to a part of the
// document itself is not fetched by browsers.
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

// value returns an attribute's value in UTF-8, with character references replaced.
func (x *extractor) value(a attr) (value []byte, ok bool) {
	raw, ok := x.scan.attr(a)
	if !ok {
		return nil, false
	}
	return x.text.attr(raw), true
}

// anchor extracts a link. An empty one leads to the page itself.
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

// lazyAttrs are the attributes with URLs that scripts load later.
const lazyAttrs = 1<<numAttrs - 1<<firstLazy

// lazy extracts the URLs that a script will load into an element.
func (x *extractor) lazy() {
	for a := firstLazy; a < numAttrs; a++ {
		switch raw, ok := x.scan.attr(a); {
		case !ok:
		case a == attrDataSrcset, a == attrDataLazySrcset:
			x.srcset(a)
		case a == attrDataBackground && mayHaveURL(raw): // url(...)
			x.styleAttribute(a)
		case isLazyURL(raw):
			x.embed(a, x.scan.tag.lazyKind())
		}
	}
}

// isLazyURL reports whether the value looks like a URL, since scripts may store any data in these attributes.
func isLazyURL(value []byte) bool {
	return bytes.ContainsAny(value, "./") && !bytes.ContainsAny(value, "{}<>()\"' \t\r\n") && value[0] != '#'
}

// lazyKind returns the kind of the resource that a script loads into an element.
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

func (x *extractor) pings() {
	urls, ok := x.value(attrPing)
	if !ok {
		return
	}
	for url := range bytes.FieldsFuncSeq(urls, func(r rune) bool { return r < ' '+1 && isSpace(byte(r)) }) {
		x.link(&reference{url: url, kind: page.Ping})
	}
}

// embed extracts a link, unless it is empty.
func (x *extractor) embed(a attr, kind page.Kind) {
	if ref, ok := x.value(a); ok && len(ref) > 0 {
		x.link(&reference{url: ref, kind: kind})
	}
}

func (x *extractor) image() {
	x.embed(attrSrc, page.Image)
	x.srcset(attrSrcset)
	x.embed(attrLowSrc, page.Image)
	x.embed(attrDynsrc, page.Media)
	x.embed(attrLongDesc, page.Cite)
}

func (p *Parser) frame() {
	p.embed(attrSrc, page.Frame)
	p.embed(attrLongDesc, page.Cite)
	if p.scan.tag == tagIframe {
		p.srcdoc()
	}
}

func (x *extractor) srcset(a attr) {
	set, ok := x.value(a)
	if !ok {
		return
	}
	for c := range candidates(set) {
		x.link(&reference{url: c.url, kind: page.Image})
	}
}

func (x *extractor) linkElement() {
	ref, ok := x.value(attrHref)
	rel, _ := x.value(attrRel)
	if ok && len(ref) > 0 {
		if kind, ok := relKind(rel, page.Alternate); ok {
			lang, _ := x.value(attrHrefLang)
			x.link(&reference{ref, kind, rel, lang})
		}
	}
	x.srcset(attrImageSrcset)
}

// link adds a link of the document's markup and returns its number. In a document that is not in UTF-8, the link's
// query is in the document's charset.
func (x *extractor) link(r *reference) int {
	if x.text.encoder != nil {
		r.url = x.text.query(r.url)
	}
	if x.onReference != nil {
		x.onReference(r.url)
		return 0
	}
	return x.links.add(x.base, r)
}

// baseElement sets the base URL from the first base element with an href. The base also applies to earlier links. If
// there are any, the document must be parsed again.
func (x *extractor) baseElement() (again bool) {
	ref, ok := x.value(attrHref)
	if !ok || x.hasBase || x.scan.inTemplate() {
		return false
	}
	x.hasBase = true
	base, err := x.fallback.Resolve(string(ref))
	if err != nil || base == x.fallback || base.Scheme() == "data" || base.Scheme() == "javascript" {
		return false
	}
	x.base = base
	return x.links.touched
}
