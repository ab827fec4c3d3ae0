package tree

import (
	"html"
	"strings"
	"unicode/utf8"

	xhtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// next reads one construct of markup, or the text before it.
func (p *Parser) next() {
	rest := p.src[p.pos:]
	if at := p.markup(rest); at > 0 {
		p.text(unescape(rest[:at]))
		p.pos += at
		return
	}
	switch {
	case rest[1] == '/':
		p.endTag()
	case rest[1] == '!':
		p.declaration(rest)
	case rest[1] == '?':
		p.skip(rest, ">")
	default:
		p.startTag()
	}
}

// markup returns the index of the first markup in a text, or the text's length.
func (p *Parser) markup(s string) int {
	for from := 0; ; {
		i := strings.IndexByte(s[from:], '<')
		if i < 0 || from+i+1 >= len(s) {
			return len(s)
		}
		from += i + 1
		switch c := s[from]; {
		case isLetter(c), c == '/', c == '!', c == '?', p.xml && (c == '_' || c >= utf8.RuneSelf):
			return from - 1
		}
	}
}

// skip moves to the position after the next end, or to the end of the page.
func (p *Parser) skip(rest, end string) {
	if i := strings.Index(rest, end); i >= 0 {
		p.pos += i + len(end)
	} else {
		p.pos = len(p.src)
	}
}

func (p *Parser) declaration(rest string) {
	const cdata = "<![CDATA["
	switch {
	case strings.HasPrefix(rest, "<!-->"), strings.HasPrefix(rest, "<!--->"):
		p.skip(rest, ">")
	case strings.HasPrefix(rest, "<!--"):
		p.pos += 4
		p.skip(rest[4:], "-->")
	case strings.HasPrefix(rest, cdata) && (p.xml || p.foreign > 0):
		text, _, _ := strings.Cut(rest[len(cdata):], "]]>")
		p.text(text)
		p.skip(rest, "]]>")
	default:
		p.skip(rest, ">")
	}
}

func (p *Parser) endTag() {
	from := p.pos + 2
	if from >= len(p.src) || !p.xml && !isLetter(p.src[from]) {
		p.skip(p.src[p.pos:], ">")
		return
	}
	i := p.nameEnd(from)
	name, a := p.name(p.src[from:i])
	p.pos = i
	if strings.IndexByte(p.src[i:], '>') < 0 {
		p.pos = len(p.src) // a tag that the end of the page cuts off does not count
		return
	}
	p.skip(p.src[i:], ">")
	if p.xml {
		p.closeXML(name)
		return
	}
	p.close(name, a)
}

func (p *Parser) startTag() {
	from := p.pos + 1
	i := p.nameEnd(from)
	name, a := p.name(p.src[from:i])
	attrs, i, selfClosing, whole := p.attributes(i)
	p.pos = i
	if !whole {
		return // a tag that the end of the page cuts off does not count
	}
	if p.xml {
		p.push(name, a, attrs)
		if selfClosing && !p.tree.Cut {
			p.pop()
		}
		return
	}
	p.start(name, a, attrs, selfClosing)
}

// nameEnd returns the end of the tag name at i.
func (p *Parser) nameEnd(i int) int {
	for i < len(p.src) && !isSpace(p.src[i]) && p.src[i] != '>' && p.src[i] != '/' {
		i++
	}
	return i
}

// name returns a tag's name, for HTML in lower case.
func (p *Parser) name(s string) (string, atom.Atom) {
	if !p.xml {
		s = lower(s)
	}
	return s, atom.Lookup([]byte(s))
}

// attributes reads the attributes of a tag from i on, and returns the tag's end.
func (p *Parser) attributes(i int) (attrs []xhtml.Attribute, end int, selfClosing, whole bool) {
	src, first := p.src, p.usedAttrs
	for {
		for i < len(src) && (isSpace(src[i]) || src[i] == '/') {
			selfClosing = src[i] == '/'
			i++
		}
		if i >= len(src) {
			return nil, len(src), false, false
		}
		if src[i] == '>' {
			return p.attrsFrom(first), i + 1, selfClosing, true
		}
		selfClosing = false
		from := i
		for i < len(src) && !isSpace(src[i]) && src[i] != '>' && src[i] != '/' && (src[i] != '=' || i == from) {
			i++
		}
		key, value := src[from:i], ""
		if !p.xml {
			key = lower(key)
		}
		j := i
		for j < len(src) && isSpace(src[j]) {
			j++
		}
		if j < len(src) && src[j] == '=' {
			value, i = p.value(j + 1)
		}
		first = p.attribute(first, key, value)
	}
}

// value reads the attribute value at i.
func (p *Parser) value(i int) (string, int) {
	src := p.src
	for i < len(src) && isSpace(src[i]) {
		i++
	}
	if i >= len(src) {
		return "", i
	}
	if q := src[i]; q == '"' || q == '\'' {
		n := strings.IndexByte(src[i+1:], q)
		if n < 0 {
			return "", len(src)
		}
		return unescapeValue(src[i+1 : i+1+n]), i + n + 2
	}
	from := i
	for i < len(src) && !isSpace(src[i]) && src[i] != '>' {
		i++
	}
	return unescapeValue(src[from:i]), i
}

// attribute adds an attribute to those of the current tag, which begin at first. It returns their new beginning.
func (p *Parser) attribute(first int, key, value string) int {
	if len(p.attrs) == 0 {
		p.attrs = append(p.attrs, make([]xhtml.Attribute, slab))
	}
	last := p.attrs[len(p.attrs)-1]
	for _, a := range last[first:p.usedAttrs] {
		if a.Key == key {
			return first
		}
	}
	if p.usedAttrs-first >= maxAttrs {
		return first
	}
	if p.usedAttrs == len(last) { // move the tag's attributes to the next slab
		more := make([]xhtml.Attribute, slab)
		p.usedAttrs = copy(more, last[first:])
		p.attrs, first, last = append(p.attrs, more), 0, more
	}
	last[p.usedAttrs] = xhtml.Attribute{Key: key, Val: value}
	p.usedAttrs++
	return first
}

func (p *Parser) attrsFrom(first int) []xhtml.Attribute {
	if first == p.usedAttrs {
		return nil
	}
	return p.attrs[len(p.attrs)-1][first:p.usedAttrs:p.usedAttrs]
}

// raw reads an element's raw text and its end tag.
func (p *Parser) raw(name string, a atom.Atom) {
	from := p.pos
	for i := from; ; {
		n := strings.Index(p.src[i:], "</")
		if n < 0 {
			p.pos = len(p.src)
			p.rawText(p.src[from:], a)
			return
		}
		i += n
		end := i + 2 + len(name)
		if end < len(p.src) && strings.EqualFold(p.src[i+2:end], name) &&
			(isSpace(p.src[end]) || p.src[end] == '>' || p.src[end] == '/') {
			p.rawText(p.src[from:i], a)
			p.pos = end
			p.skip(p.src[end:], ">")
			return
		}
		i += 2
	}
}

func (p *Parser) rawText(s string, a atom.Atom) {
	if a == atom.Title || a == atom.Textarea {
		s = unescape(s)
	}
	if s != "" {
		p.add(xhtml.Node{Type: xhtml.TextNode, Data: s})
	}
}

func unescape(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	return html.UnescapeString(s)
}

// unescapeValue is unescape for attribute values: a name without a semicolon is not a reference if a letter, a digit or
// "=" follows, so "?a=1&copy=2" stays unchanged.
func unescapeValue(s string) string {
	at := strings.IndexByte(s, '&')
	if at < 0 {
		return s
	}
	var b strings.Builder
	for ; at >= 0; at = strings.IndexByte(s, '&') {
		b.WriteString(s[:at])
		s = s[at:]
		n := 1
		for n < len(s) && (isLetter(s[n]) || '0' <= s[n] && s[n] <= '9' || s[n] == '#' && n == 1) {
			n++
		}
		bare := true
		if n < len(s) && s[n] == ';' {
			n, bare = n+1, false
		}
		c := html.UnescapeString(s[:n])
		if bare && n > 1 && s[1] != '#' && (n < len(s) && s[n] == '=' || isLetter(c[len(c)-1])) {
			c = s[:n]
		}
		b.WriteString(c)
		s = s[n:]
	}
	b.WriteString(s)
	return b.String()
}

func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return strings.ToLower(s)
		}
	}
	return s
}

func isLetter(c byte) bool { c |= 0x20; return 'a' <= c && c <= 'z' }

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }
