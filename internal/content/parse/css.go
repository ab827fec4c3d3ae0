package parse

import (
	"bytes"
	"iter"
	"unicode/utf8"

	"kumo/internal/base/page"
)

// styles extracts the references of a style sheet. It ignores references to parts of the page itself.
func (x *extractor) styles(css []byte) {
	for ref, kind := range cssReferences(css) {
		ref = unescapeCSS(x.text.decode(ref))
		if len(ref) > 0 && ref[0] != '#' {
			x.link(&reference{url: ref, kind: kind})
		}
	}
}

// styleAttribute extracts the references of a style in an attribute: the element's style or a style that a script will
// apply.
func (x *extractor) styleAttribute(a attr) {
	if raw, ok := x.scan.attr(a); ok && mayHaveURL(raw) {
		x.text.reset()
		css := x.text.attr(raw)
		state := x.text.state
		x.text.state = plain // css is UTF-8
		x.styles(css)
		x.text.state = state
	}
}

// foreignStyle extracts the references of an SVG style element. The tokenizer treats its text as markup, so the style
// sheet ends at the next tag, or is a CDATA section.
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

// cssReferences yields the references of a style sheet, unchanged: page.Style for @import, page.CSS for url(), src()
// and the strings of image-set(). It implements the tokenizer of CSS Syntax as far as it affects their positions.
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

	imports bool // directly after @import
	names   bool // inside @namespace, whose URLs are names
	set     int  // parenthesis depth inside image-set()
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

// found sets the current reference. Only the first reference after @import is an import.
func (s *cssScanner) found(ref []byte) bool {
	s.ref, s.kind = ref, page.CSS
	if s.imports {
		s.kind, s.imports = page.Style, false
	}
	return true
}

// other consumes a byte that is not part of a name, a string or a comment.
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

// function reads a name and, if it is a function with a URL argument, the argument. It reports whether it found a URL.
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
	case s.set > 0 && (equalFold(word, "type") || equalFold(word, "format")): // their strings are not URLs
		s.pos += indexByte(s.src[s.pos:], ')')
	}
	return false
}

// argument reads the argument of url() and the closing parenthesis.
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
		case c == '"', c == '\'', c == '(', end < s.pos: // white space inside the URL
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

// escapeLen returns the length of the escape at the beginning of in, including white space that ends a hexadecimal one.
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

// quoted reads a string, which also ends at a line end.
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

// unescapeCSS returns in without backslash escapes. It may reuse the memory of in.
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
