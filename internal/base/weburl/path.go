package weburl

import (
	"bytes"
	"strings"
)

// path appends the segments of in to the path written so far, and resolves dot segments. Slashes and backslashes
// separate segments.
func (p *parser) path(in []byte) {
	root := p.start + int(p.at.path)
	for first := true; ; {
		n := segmentLen(in)
		last := n == len(in)
		dots := dotSegment(in[:n])
		if dots == 0 && first { // after the dots at the beginning of a relative path
			if first = false; simplePath(in, p.pathSet) {
				p.dst = append(append(p.dst, '/'), in...)
				return
			}
		}
		if dots == 2 {
			p.dst = p.dst[:root+max(0, bytes.LastIndexByte(p.dst[root:], '/'))]
		}
		if dots == 0 || last {
			p.dst = append(p.dst, '/')
		}
		if dots == 0 {
			p.dst = appendEncoded(p.dst, in[:n], p.pathSet)
		}
		if last {
			return
		}
		in = in[n+1:]
	}
}

// simplePath reports whether a path, without its first slash, needs no change.
func simplePath(in []byte, set set) bool {
	set |= backslash
	before := byte('/')
	for _, c := range in {
		if sets[c]&set != 0 || before == '/' && (c == '.' || c == '%') {
			return false
		}
		before = c
	}
	return true
}

func segmentLen(in []byte) int {
	for i, c := range in {
		if isSlash(c) {
			return i
		}
	}
	return len(in)
}

// dotSegment returns the number of dots if seg is "." or "..", otherwise 0. A dot may be written as %2e.
func dotSegment(seg []byte) int {
	n := 0
	for len(seg) > 0 {
		switch {
		case seg[0] == '.':
			seg = seg[1:]
		case seg[0] == '%' && len(seg) >= 3 && seg[1] == '2' && seg[2]|0x20 == 'e':
			seg = seg[3:]
		default:
			return 0
		}
		if n++; n > 2 {
			return 0
		}
	}
	return n
}

// baseFolder writes the base's path up to the last slash, exclusive.
func (p *parser) baseFolder() {
	path := p.base.Path()
	p.appendBase(path[:strings.LastIndexByte(path, '/')], p.pathSet)
}

func (p *parser) basePath() {
	p.appendBase(p.base.Path(), p.pathSet)
	p.at.pathEnd = p.pos()
}

func (p *parser) baseQuery() {
	b := p.base
	if b.Query() != "" || !p.canonical {
		p.appendBase(b.href[b.at.pathEnd:b.at.queryEnd], p.querySet)
	}
	p.at.queryEnd = p.pos()
}

// appendBase appends a component of the base. It is percent-encoded already, but may not be canonical.
func (p *parser) appendBase(part string, set set) {
	if p.canonical {
		p.dst = appendEncoded(p.dst, []byte(part), set)
		return
	}
	p.dst = append(p.dst, part...)
}
