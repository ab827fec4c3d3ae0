package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// metaElement processes a meta element. It reports whether the document must be parsed again.
func (p *Parser) metaElement() (again bool) {
	if p.tentative && p.metaCharset() {
		return true
	}
	content, ok := p.value(attrContent)
	if !ok {
		return false
	}
	if p.keyword(attrHTTPEquiv) == "refresh" {
		p.refresh(content)
	}
	if name, ok := p.value(attrName); ok {
		p.namedMeta(name, content)
	}
	if property, ok := p.value(attrProperty); ok {
		p.namedMeta(property, content)
	}
	return false
}

// namedMeta processes a meta element with a name or a property.
func (p *Parser) namedMeta(name, content []byte) {
	if p.depth == 0 && (equalFold(name, "robots") || p.cfg.Agent != "" && bytes.EqualFold(name, []byte(p.cfg.Agent))) {
		p.says.robots.meta(content)
		return
	}
	if p.depth == 0 && len(name) > len("tdm-") && equalFold(name[:len("tdm-")], "tdm-") {
		p.tdmMeta(name, content)
		return
	}
	if p.depth == 0 && p.description == "" && equalFold(name, "description") {
		p.description = collapse(string(content), p.cfg.MaxTitle)
		return
	}
	if kind, absolute, ok := propertyKind(name); ok && len(content) > 0 && (!absolute || isAbsolute(content)) {
		p.link(&reference{url: content, kind: kind})
	}
}

// tdmMeta processes a meta element of TDMRep. The first one of each name counts.
func (p *Parser) tdmMeta(name, content []byte) {
	var to *string
	switch {
	case equalFold(name, "tdm-reservation"):
		to = &p.says.tdm.Reservation
	case equalFold(name, "tdm-policy"):
		to = &p.says.tdm.Policy
	default:
		return
	}
	if *to == "" {
		*to = collapse(string(content), p.cfg.MaxTitle)
	}
}

// propertyKind returns the kind of the URL in a meta element with this name. absolute means that the content may also
// be something other than a URL, so only absolute URLs count.
func propertyKind(name []byte) (kind page.Kind, absolute, ok bool) {
	const longest = len("og:image:secure_url")
	if len(name) < len("og:url") || len(name) > longest {
		return 0, false, false
	}
	var room [longest]byte
	for i, c := range name {
		room[i] = toLower(c)
	}
	switch string(room[:len(name)]) {
	case "og:image", "og:image:url", "og:image:secure_url", "twitter:image", "twitter:image:src", "twitter:image0":
		return page.Image, false, true
	case "og:video", "og:video:url", "og:video:secure_url", "og:audio", "og:audio:url", "og:audio:secure_url",
		"twitter:player", "twitter:player:stream":
		return page.Media, false, true
	case "og:url", "og:see_also", "al:web:url":
		return page.Meta, false, true
	case "article:author", "article:publisher", "twitter:url":
		return page.Meta, true, true
	}
	return 0, false, false
}

// isAbsolute reports whether the text begins like a web address.
func isAbsolute(text []byte) bool {
	return hasPrefixFold(text, "http://") || hasPrefixFold(text, "https://")
}

// hasPrefixFold reports whether text begins with prefix, which must be in lower case, and is longer than it.
func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) > len(prefix) && equalFold(text[:len(prefix)], prefix)
}

// refresh processes a meta refresh. The first one applies to the page.
func (p *Parser) refresh(content []byte) {
	seconds, ref, ok := parseRefresh(content)
	if !ok {
		return
	}
	link := 0
	if len(ref) > 0 {
		link = p.link(&reference{url: ref, kind: page.Refresh})
	}
	if p.depth == 0 {
		p.says.refresh.set(seconds, link, len(ref) == 0)
	}
}

// A refresh is the first refresh of a page.
type refresh struct {
	seen, self bool // self: to the page itself
	seconds    int
	link       int // number of its link, 0 if it is not usable
}

func (r *refresh) set(seconds, link int, self bool) {
	if !r.seen && (self || link > 0) {
		*r = refresh{true, self, seconds, link}
	}
}

// metaCharset changes the charset to that of a meta element, if it was only a guess. Everything read so far may have
// been decoded wrongly, including the base URL.
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
	p.tentative, p.how = false, howMeta
	if cs.name == p.charset.name {
		return false
	}
	p.charset, p.base, p.hasBase = cs, p.self, false
	return true
}

// keyword returns an attribute's value in lower case if it is one of the values that this package compares with.
func (x *extractor) keyword(a attr) string {
	if _, ok := x.scan.attr(a); !ok {
		return ""
	}
	value, _ := x.value(a)
	var room [maxName]byte
	switch string(lower(&room, value)) {
	case "refresh":
		return "refresh"
	case "content-type":
		return "content-type"
	case "image":
		return "image"
	case "submit", "button", "reset":
		return "button"
	case "post", "dialog":
		return "post"
	}
	return ""
}
