package parse

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"kumo/internal/base/page"
)

// styles takes the references of a style sheet as it stands in the markup. Those to parts of the page itself are none.
func (x *extractor) styles(css []byte) {
	for ref, kind := range cssReferences(css) {
		ref = unescapeCSS(x.text.decode(ref))
		if len(ref) > 0 && ref[0] != '#' {
			x.link(&reference{url: ref, kind: kind})
		}
	}
}

// styleAttribute takes the references of an element's own style, or of what a script makes that of.
func (x *extractor) styleAttribute(a attr) {
	if raw, ok := x.scan.attr(a); ok && mayHaveURL(raw) {
		x.text.reset()
		css := x.text.attr(raw)
		state := x.text.state
		x.text.state = plain // it is UTF-8 now
		x.styles(css)
		x.text.state = state
	}
}

// foreignStyle takes the style element of SVG, whose text is markup to the tokenizer: up to the next tag, or a CDATA
// section.
func (x *extractor) foreignStyle() {
	if x.scan.selfClosing {
		return
	}
	rest := x.scan.src[x.scan.pos:]
	css := rest[:indexByte(rest, '<')]
	if section, ok := bytes.CutPrefix(rest[len(css):], []byte("<![CDATA[")); ok && len(trimLeft(css)) == 0 {
		css, _, _ = bytes.Cut(section, []byte("]]>"))
	}
	x.styles(css)
}

// cssReferences gives what a style sheet refers to, as it stands there: page.Style for @import, page.CSS for url(),
// src() and the strings of image-set(). It is the tokenizer of CSS Syntax as far as that decides where these are.
func cssReferences(css []byte) iter.Seq2[[]byte, page.Kind] {
	return func(yield func([]byte, page.Kind) bool) {
		s := cssScanner{src: css}
		for s.next() {
			if len(s.ref) > 0 && !yield(s.ref, s.kind) {
				return
			}
		}
	}
}

type cssScanner struct {
	src  []byte
	pos  int
	ref  []byte
	kind page.Kind

	imports bool // just behind @import
	names   bool // within @namespace, whose URLs are names
	set     int  // how deep in the parentheses of an image-set
}

func (s *cssScanner) next() bool {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == '"' || c == '\'':
			if text := s.quoted(c); (s.imports || s.set > 0) && !s.names {
				return s.found(text)
			}
		case c == '/' && s.pos+1 < len(s.src) && s.src[s.pos+1] == '*':
			s.comment()
		case c == '@':
			s.pos++
			word := s.word()
			s.imports, s.names = equalFold(word, "import"), equalFold(word, "namespace")
		case isNameByte(c) || c == '\\':
			if s.function() && !s.names {
				return s.found(s.ref)
			}
		case isSpace(c):
			s.pos++
		default:
			s.other(c)
		}
	}
	return false
}

// found makes ref the reference. Only the first after @import is what is imported.
func (s *cssScanner) found(ref []byte) bool {
	s.ref, s.kind = ref, page.CSS
	if s.imports {
		s.kind, s.imports = page.Style, false
	}
	return true
}

// other reads a byte that is no part of a name, a string or a comment.
func (s *cssScanner) other(c byte) {
	s.pos++
	switch {
	case c == '(' && s.set > 0:
		s.set++
	case c == ')' && s.set > 0:
		s.set--
	case c == ';' || c == '{' || c == '}':
		s.imports, s.names, s.set = false, false, 0
	}
}

func (s *cssScanner) comment() {
	if n := bytes.Index(s.src[s.pos+2:], []byte("*/")); n >= 0 {
		s.pos += n + 4
	} else {
		s.pos = len(s.src)
	}
}

// function reads a name and, if it is that of a function of one URL, its argument. It reports whether it found one.
func (s *cssScanner) function() bool {
	word := unescapeCSS(s.word())
	if s.pos == len(s.src) || s.src[s.pos] != '(' {
		return false
	}
	switch {
	case equalFold(word, "url"), equalFold(word, "src"):
		s.pos++
		return s.argument()
	case equalFold(word, "image-set"), equalFold(word, "-webkit-image-set"):
		s.pos++
		s.set = 1
	case s.set > 0 && (equalFold(word, "type") || equalFold(word, "format")): // their strings are no URLs
		s.pos += indexByte(s.src[s.pos:], ')')
	}
	return false
}

// argument reads the argument of url() with its closing parenthesis.
func (s *cssScanner) argument() bool {
	s.spaces()
	if s.pos < len(s.src) && (s.src[s.pos] == '"' || s.src[s.pos] == '\'') {
		s.ref = s.quoted(s.src[s.pos])
		s.spaces()
		if s.pos < len(s.src) && s.src[s.pos] == ')' {
			s.pos++
		}
		return true
	}
	start, end, good := s.pos, s.pos, true
	for s.pos < len(s.src) && s.src[s.pos] != ')' {
		switch c := s.src[s.pos]; {
		case isSpace(c):
			s.pos++
			continue
		case c == '"', c == '\'', c == '(', end < s.pos: // white space within
			good = false
		case c == '\\':
			s.pos = min(s.pos+escapeLen(s.src[s.pos:]), len(s.src)) - 1
		}
		s.pos++
		end = s.pos
	}
	s.ref = s.src[start:end]
	s.pos = min(s.pos+1, len(s.src))
	return good
}

// escapeLen is the length of the escape at the beginning of in, with the white space that ends a hexadecimal one.
func escapeLen(in []byte) int {
	n := 1
	for n < len(in) && n <= 6 && digit(in[n]) < 16 {
		n++
	}
	if n == 1 || n < len(in) && isSpace(in[n]) {
		n++
	}
	return n
}

// quoted reads a string, which also ends with its line.
func (s *cssScanner) quoted(quote byte) []byte {
	s.pos++
	start := s.pos
	for ; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case quote:
			s.pos++
			return s.src[start : s.pos-1]
		case '\n':
			return nil
		case '\\':
			s.pos++
		}
	}
	s.pos = len(s.src)
	return s.src[start:]
}

func (s *cssScanner) spaces() {
	for s.pos < len(s.src) && isSpace(s.src[s.pos]) {
		s.pos++
	}
}

func (s *cssScanner) word() []byte {
	start := s.pos
	for s.pos < len(s.src) && (isNameByte(s.src[s.pos]) || s.src[s.pos] == '\\') {
		if s.src[s.pos] == '\\' {
			s.pos = min(s.pos+escapeLen(s.src[s.pos:]), len(s.src))
		} else {
			s.pos++
		}
	}
	return s.src[start:s.pos]
}

func isNameByte(c byte) bool { return isAlnum(c) || c == '-' || c == '_' || c >= utf8.RuneSelf }

// unescapeCSS takes backslashes out, in place of a copy.
func unescapeCSS(in []byte) []byte {
	i := bytes.IndexByte(in, '\\')
	if i < 0 {
		return in
	}
	out := append(make([]byte, 0, len(in)), in[:i]...)
	for in = in[i:]; len(in) > 0; {
		if in[0] != '\\' || len(in) == 1 {
			out, in = append(out, in[0]), in[1:]
			continue
		}
		in = in[1:]
		r, n := rune(0), 0
		for n < len(in) && n < 6 && digit(in[n]) < 16 {
			r, n = r*16+digit(in[n]), n+1
		}
		switch {
		case n > 0:
			if out, in = utf8.AppendRune(out, r), in[n:]; len(in) > 0 && isSpace(in[0]) {
				in = in[1:]
			}
		case in[0] == '\n':
			in = in[1:]
		default:
			out, in = append(out, in[0]), in[1:]
		}
	}
	return out
}
