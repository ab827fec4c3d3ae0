package parse

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A scanner finds the start tags that mean something to a crawl. It follows the tokenizer of the HTML standard
// (section 13.2.5), whose states are laid out here as a function for each thing that markup can be.
type scanner struct {
	src []byte
	pos int

	start        int // where the tag begins
	tag          tag
	closing      bool   // it is an end tag
	reportedEnds uint64 // a bit for each tag whose end is told, too
	initials     uint32 // a bit for each letter with which the name of such a tag begins
	space        namespace
	selfClosing  bool
	content      []byte // the raw text of a title, character references and all
	have         uint64 // a bit for each attribute that the tag has
	values       [numAttrs]extent

	lead *lead // gets the text between the tags as long as it needs some
	nest nesting
	xml  bool // the document is XHTML, where every element may close itself and no text is raw
	prefixes
}

// An extent is where a text lies in the document.
type extent struct{ start, end int }

func (s *scanner) reset(src []byte, xml bool) {
	*s = scanner{src: src, xml: xml, reportedEnds: s.reportedEnds, initials: s.initials}
	if xml {
		s.prefixes = findPrefixes(src)
	}
}

// attr returns the attribute's value as it stands in the markup, and whether the tag has it. An attribute without a
// value has an empty one.
func (s *scanner) attr(a attr) (value []byte, ok bool) {
	if s.have&(1<<a) == 0 {
		return nil, false
	}
	return s.src[s.values[a].start:s.values[a].end], true
}

// has reports whether the tag has one of the attributes in the set of bits.
func (s *scanner) has(set uint64) bool { return s.have&set != 0 }

// next goes to the next start tag with a name that is known or a style that names something, or to an end tag that is
// asked for. It reports false at the end of the document.
func (s *scanner) next() bool {
	src := s.src
	for i := s.pos; ; {
		if i < len(src) && src[i] == '<' { // between two tags
			i++
		} else {
			from := i
			i = index(src, i, '<') + 1
			if s.lead != nil {
				s.gatherText(from, i-1)
			}
		}
		if i >= len(src) {
			s.pos = len(src)
			return false
		}
		matters := false
		switch c := src[i]; { // as construct does, without calling it for every tag
		case isLetter(c):
			i, matters = s.startTag(i)
		case c == '/':
			i, matters = s.endTag(i + 1)
		default:
			i, matters = s.construct(i)
		}
		if matters {
			s.pos = i
			return true
		}
	}
}

// Where the reading goes on is passed from one of the functions below to the other rather than kept in the scanner:
// what a processor has to store and to load again before it knows the next byte, it waits for.

// construct reads what begins with the "<" just before i. It returns where that ends, and whether it is a tag that
// matters.
func (s *scanner) construct(i int) (end int, matters bool) {
	switch c := s.src[i]; {
	case isLetter(c):
		return s.startTag(i)
	case c == '/':
		return s.endTag(i + 1)
	case c == '!':
		return s.declaration(i + 1), false
	case c == '?':
		return past(s.src, i, '>'), false
	}
	return i, false
}

// past is where the text behind the first c from i on begins, or the end of the document.
func past(src []byte, i int, c byte) int {
	return min(index(src, i, c)+1, len(src))
}

// ones and highs are the lowest and the highest bits of eight bytes.
const ones, highs = 0x0101010101010101, 0x8080808080808080

// index is where the first c from i on stands in src, or the length of src. Most are so near that they are among the
// first eight bytes, which are looked at as one number: those that equal c become zero, and the highest bit of the
// first zero is set.
func index(src []byte, i int, c byte) int {
	if i+8 <= len(src) {
		x := binary.LittleEndian.Uint64(src[i:]) ^ ones*uint64(c)
		if zeros := (x - ones) &^ x & highs; zeros != 0 {
			return i + bits.TrailingZeros64(zeros)/8
		}
		i += 8
	}
	if n := bytes.IndexByte(src[i:], c); n >= 0 {
		return i + n
	}
	return len(src)
}

// startTag reads a start tag and, if its element has raw text, that text and the end tag too. If the document ends
// within the tag, it is none.
func (s *scanner) startTag(i int) (end int, matters bool) {
	s.start, s.closing = i-1, false
	name := i
	if s.elements != nil {
		i = s.skipPrefix(i)
	}
	s.tag, end = tags.read(s.src, i, endsTagName)
	end, whole := s.attributes(end, s.tag)
	if !whole {
		return end, false
	}
	s.space = inHTML
	if s.nest.depth > 0 || s.tag == tagSVG || s.tag == tagMath { // hardly ever
		s.space = s.nest.open(s)
	}
	if s.tag >= firstRaw {
		s.content = nil
		if s.space == inHTML && (!s.xml || s.tag == tagTitle && !s.selfClosing && name == i) {
			end = s.rawText(end)
		}
	}
	return end, s.tag.known() || s.have != 0
}

// endTag reads an end tag, whose name would be at i. It matters if it was asked for.
func (s *scanner) endTag(i int) (end int, matters bool) {
	start := i - len("</")
	if i == len(s.src) || !isLetter(s.src[i]) {
		return past(s.src, i, '>'), false
	}
	if s.elements != nil {
		i = s.skipPrefix(i)
	}
	end = nameEnd(s.src, i, endsTagName)
	if s.nest.depth == 0 && s.initials&initialBit(s.src[i]) == 0 { // nearly always
		if end == len(s.src) || s.src[end] != '>' {
			end, _ = s.attributes(end, tagOther)
			return end, false
		}
		return end + 1, false
	}
	s.start, s.closing, s.tag = start, true, tags.find(s.src, i, end)
	end, whole := s.attributes(end, tagOther)
	if !whole {
		return end, false
	}
	if s.nest.depth > 0 {
		s.nest.close(s.tag, s.xml)
	}
	return end, s.reportedEnds&(1<<s.tag) != 0
}

// inTemplate reports whether the tag stands in a template element, whose content is no part of the document.
func (s *scanner) inTemplate() bool {
	before := s.src[:s.start]
	if indexFold(before, "<template") < 0 {
		return false
	}
	in := scanner{src: before, xml: s.xml, prefixes: s.prefixes}
	in.reportEnd(tagTemplate, 't')
	depth := 0
	for in.next() {
		switch {
		case in.tag != tagTemplate || in.space != inHTML:
		case !in.closing:
			depth++
		case depth > 0:
			depth--
		}
	}
	return depth > 0
}

// reportEnd makes the ends of an element be told, whose name begins with that letter.
func (s *scanner) reportEnd(t tag, initial byte) {
	s.reportedEnds |= 1 << t
	s.initials |= initialBit(initial)
}

// ignoreEnd makes the ends of an element that has its initial to itself be passed over again.
func (s *scanner) ignoreEnd(t tag, initial byte) {
	s.reportedEnds &^= 1 << t
	s.initials &^= initialBit(initial)
}

func initialBit(letter byte) uint32 { return 1 << (letter & 31) }

// declaration reads what begins with "<!": a comment, a CDATA section, a doctype or what counts as a comment.
func (s *scanner) declaration(i int) (end int) {
	rest := s.src[i:]
	switch {
	case bytes.HasPrefix(rest, []byte("--")):
		return s.comment(i)
	case (s.xml || s.nest.foreign()) && bytes.HasPrefix(rest, []byte("[CDATA[")):
		if n := bytes.Index(rest, []byte("]]>")); n >= 0 {
			return i + n + 3
		}
		return len(s.src)
	}
	return past(s.src, i, '>')
}

// comment reads to the end of a comment: "-->" or "--!>", where the dashes of "-->" may be those of the beginning.
func (s *scanner) comment(start int) (end int) {
	for end = index(s.src, start, '>'); end < len(s.src); end = index(s.src, end+1, '>') {
		text := s.src[start:end]
		if bytes.HasSuffix(text, []byte("--")) || len(text) >= 5 && bytes.HasSuffix(text, []byte("--!")) {
			return end + 1
		}
	}
	return end
}

// nameEnd is where the name at i ends: before the first byte whose class is in ends, but not before the second one.
func nameEnd(src []byte, i int, ends uint8) int {
	for i++; i < len(src) && class[src[i]]&ends == 0; i++ {
	}
	return i
}

// attributes reads to the end of a tag of that name. It reports false if the document ends first.
func (s *scanner) attributes(i int, of tag) (end int, whole bool) {
	s.have, s.selfClosing = 0, false
	for src := s.src; i < len(src); {
		switch c := src[i]; {
		case c == '>':
			return i + 1, true
		case isSpace(c):
			i++
		case c == '/':
			i++
			s.selfClosing = i < len(src) && src[i] == '>'
		default:
			i = s.attribute(i, of)
		}
	}
	return i, false
}

// attribute reads the attribute at start of a tag of that name and returns where it ends. The first of several with one
// name counts.
func (s *scanner) attribute(start int, of tag) (end int) {
	src := s.src
	a, end := attrs.read(src, start, endsAttrName) // even a "=" can begin a name
	if a == attrOther && s.links != nil && s.isLink(src[start:end]) {
		a = attrXlinkHref
	}
	if end < len(src) && src[end] != '=' {
		end = s.skipSpace(end)
	}
	var value extent
	if end+1 < len(src) && src[end] == '=' && src[end+1] == '"' { // nearly always
		value.start = end + 2
		value.end = index(src, value.start, '"')
		end = min(value.end+1, len(src))
	} else if end < len(src) && src[end] == '=' {
		value, end = s.value(s.skipSpace(end + 1))
	}
	if a == attrOther || s.have&(1<<a) != 0 {
		return end
	}
	if of.known() || a >= firstLazy || a == attrStyle && mayHaveURL(src[value.start:value.end]) {
		s.have |= 1 << a
		s.values[a] = value
	}
	return end
}

// mayHaveURL reports whether a style may have a url() in it.
func mayHaveURL(style []byte) bool { return len(style) > 4 && bytes.IndexByte(style, '(') >= 0 }

// value reads the attribute value at i and returns where it ends.
func (s *scanner) value(i int) (value extent, end int) {
	src := s.src
	if i < len(src) && (src[i] == '"' || src[i] == '\'') {
		end = index(src, i+1, src[i])
		return extent{i + 1, end}, min(end+1, len(src))
	}
	for end = i; end < len(src) && class[src[end]]&endsValue == 0; {
		end++
	}
	return extent{i, end}, end
}

func (s *scanner) skipSpace(i int) int {
	for i < len(s.src) && isSpace(s.src[i]) {
		i++
	}
	return i
}

// The classes of bytes within a tag.
const (
	space uint8 = 1 << iota
	letter
	endsTagName
	endsAttrName
	endsValue
)

var class = func() (t [256]uint8) {
	for _, c := range []byte(" \t\n\r\f") {
		t[c] = space | endsTagName | endsAttrName | endsValue
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-0x20] = letter, letter
	}
	t['/'] = endsTagName | endsAttrName
	t['>'] = endsTagName | endsAttrName | endsValue
	t['='] = endsAttrName
	return t
}()

func isSpace(c byte) bool  { return class[c]&space != 0 }
func isLetter(c byte) bool { return class[c]&letter != 0 }
