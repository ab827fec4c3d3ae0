package parse

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// A scanner finds the start tags that are relevant to a crawl. It implements the tokenizer of the HTML standard
// (section 13.2.5) with one function per construct instead of one per state.
type scanner struct {
	src []byte
	pos int

	start        int // start of the tag
	tag          tag
	closing      bool   // it is an end tag
	reportedEnds uint64 // a bit for each tag whose end tags are reported
	initials     uint32 // a bit for each first letter of such a tag
	space        namespace
	selfClosing  bool
	content      []byte // the raw text of a title, with character references
	have         uint64 // a bit for each attribute of the tag
	values       [numAttrs]extent

	lead *lead // collects the text between the tags; nil: enough
	nest nesting
	xml  bool // the document is XHTML: any element may close itself, and no element has raw text
	prefixes
}

// An extent is the position of a text in the document.
type extent struct{ start, end int }

func (s *scanner) reset(src []byte, xml bool) {
	*s = scanner{src: src, xml: xml, reportedEnds: s.reportedEnds, initials: s.initials}
	if xml {
		s.prefixes = findPrefixes(src)
	}
}

// attr returns the raw value of an attribute, and whether the tag has the attribute. An attribute without a value has
// an empty one.
func (s *scanner) attr(a attr) (value []byte, ok bool) {
	if s.have&(1<<a) == 0 {
		return nil, false
	}
	return s.src[s.values[a].start:s.values[a].end], true
}

// has reports whether the tag has one of the attributes in the bit set.
func (s *scanner) has(set uint64) bool { return s.have&set != 0 }

// next advances to the next start tag with a known name or with a style that may contain a URL, or to a reported end
// tag. It returns false at the end of the document.
func (s *scanner) next() bool {
	src := s.src
	for i := s.pos; ; {
		if i < len(src) && src[i] == '<' { // no text between two tags
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
		switch c := src[i]; { // the same as in construct, without a call for every tag
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

// The functions below pass the position as argument and result instead of storing it in the scanner: a store followed
// by a load would delay the next byte.

// construct reads the construct whose "<" is just before i. It returns its end, and whether it is a relevant tag.
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

// past returns the position after the first c from i on, or the end of the document.
func past(src []byte, i int, c byte) int {
	return min(index(src, i, c)+1, len(src))
}

// ones and highs have the lowest and the highest bit of each of eight bytes set.
const ones, highs = 0x0101010101010101, 0x8080808080808080

// index returns the position of the first c in src from i on, or the length of src. Most matches are within eight
// bytes, which are compared as one number: bytes equal to c become zero, and the highest bit of the first zero byte is
// set.
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

// startTag reads a start tag and, if its element has raw text, the text and the end tag. A tag that the document's end
// cuts off does not count.
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
	if s.nest.depth > 0 || s.tag == tagSVG || s.tag == tagMath { // rare
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

// endTag reads an end tag, whose name would be at i. It is relevant if its end tags are reported.
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

// inTemplate reports whether the tag is in a template element, whose content is not part of the document.
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

// reportEnd makes next report the end tags of an element. initial is the first letter of its name.
func (s *scanner) reportEnd(t tag, initial byte) {
	s.reportedEnds |= 1 << t
	s.initials |= initialBit(initial)
}

// ignoreEnd undoes reportEnd. No other reported element may have the same initial.
func (s *scanner) ignoreEnd(t tag, initial byte) {
	s.reportedEnds &^= 1 << t
	s.initials &^= initialBit(initial)
}

func initialBit(letter byte) uint32 { return 1 << (letter & 31) }

// declaration reads a construct that begins with "<!": a comment, a CDATA section, a doctype, or an invalid construct
// that counts as a comment.
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

// comment reads up to the end of a comment: "-->" or "--!>". The dashes of "-->" may be those of the comment's
// beginning.
func (s *scanner) comment(start int) (end int) {
	for end = index(s.src, start, '>'); end < len(s.src); end = index(s.src, end+1, '>') {
		text := s.src[start:end]
		if bytes.HasSuffix(text, []byte("--")) || len(text) >= 5 && bytes.HasSuffix(text, []byte("--!")) {
			return end + 1
		}
	}
	return end
}

// nameEnd returns the end of the name at i. The name has at least one byte and ends before the next byte whose class is
// in ends.
func nameEnd(src []byte, i int, ends uint8) int {
	for i++; i < len(src) && class[src[i]]&ends == 0; i++ {
	}
	return i
}

// attributes reads up to the end of a tag. It returns false if the document ends first.
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

// attribute reads the attribute at start and returns its end. If an attribute is repeated, the first one counts.
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

// mayHaveURL reports whether a style may contain a url().
func mayHaveURL(style []byte) bool { return len(style) > 4 && bytes.IndexByte(style, '(') >= 0 }

// value reads the attribute value at i and returns its end.
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

// Classes of bytes within a tag.
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
