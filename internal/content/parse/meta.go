package parse

import (
	"bytes"

	"kumo/internal/base/page"
)

// metaElement takes what a meta element says. It reports whether to begin again.
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

// namedMeta takes a meta element that has a name or a property.
func (p *Parser) namedMeta(name, content []byte) {
	if p.depth == 0 && (equalFold(name, "robots") || p.cfg.Agent != "" && bytes.EqualFold(name, []byte(p.cfg.Agent))) {
		p.says.robots.meta(content)
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

// propertyKind says what the URL in a meta element of this name is. absolute means that the content may be something
// else.
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

// isAbsolute reports whether the text begins as a web address does.
func isAbsolute(text []byte) bool {
	return hasPrefixFold(text, "http://") || hasPrefixFold(text, "https://")
}

// hasPrefixFold reports whether text begins with prefix, which is in lower case, and goes on.
func hasPrefixFold(text []byte, prefix string) bool {
	return len(text) > len(prefix) && equalFold(text[:len(prefix)], prefix)
}

// refresh takes a meta refresh; the first counts for the page.
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

// A refresh is what the first refresh of a page says.
type refresh struct {
	seen, self bool // self: it is to the page itself
	seconds    int
	link       int // the number of its link, 0 if that is unusable
}

func (r *refresh) set(seconds, link int, self bool) {
	if !r.seen && (self || link > 0) {
		*r = refresh{true, self, seconds, link}
	}
}

// metaCharset changes the charset to the one that a meta element names. That was a guess only, and everything so far
// may have been read wrongly, the base URL too.
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

// keyword returns an attribute's value in lower case if it is one of those compared with here.
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
