package parse

import "bytes"

// A scanner finds the start tags that mean something to a crawl. It follows the tokenizer of the HTML standard
// (section 13.2.5), whose states are laid out here as a function for each thing that markup can be.
type scanner struct {
	src []byte
	pos int

	start       int // where the tag begins
	tag         tag
	closing     bool   // it is an end tag
	ends        uint64 // a bit for each tag whose end is told, too
	space       namespace
	selfClosing bool
	content     []byte // the raw text of a title, character references and all
	have        uint32 // a bit for each attribute that the tag has
	values      [numAttrs][]byte

	nest nesting
	xml  bool // the document is XHTML, where every element may close itself and no text is raw
}

func (s *scanner) reset(src []byte, xml bool) {
	*s = scanner{src: src, xml: xml, ends: s.ends}
}

// attr returns the attribute's value as it stands in the markup, and whether the tag has it. An attribute without a value has
// an empty one.
func (s *scanner) attr(a attr) (value []byte, ok bool) {
	if s.have&(1<<a) == 0 {
		return nil, false
	}
	return s.values[a], true
}

// has reports whether the tag has one of the attributes in the set of bits.
func (s *scanner) has(set uint32) bool { return s.have&set != 0 }

// next goes to the next start tag with a name that is known or a style that names something, or to an end tag that is asked for.
// It reports false at the end of the document.
func (s *scanner) next() bool {
	for s.skipPast('<') && s.pos < len(s.src) {
		if s.construct() {
			return true
		}
	}
	return false
}

// construct reads what begins with the "<" just before. It reports whether that is a tag that matters.
func (s *scanner) construct() bool {
	s.start, s.closing = s.pos-1, false
	switch c := s.src[s.pos]; {
	case isLetter(c):
		return s.startTag() && (s.tag.known() || s.have != 0)
	case c == '/':
		s.pos++
		return s.endTag()
	case c == '!':
		s.pos++
		s.declaration()
	case c == '?':
		s.skipPast('>')
	}
	return false
}

// skipPast goes behind the next c, or to the end of the document, where it reports false.
func (s *scanner) skipPast(c byte) bool {
	if s.pos < len(s.src) && s.src[s.pos] == c { // between two tags
		s.pos++
		return true
	}
	i := bytes.IndexByte(s.src[s.pos:], c)
	if i < 0 {
		s.pos = len(s.src)
		return false
	}
	s.pos += i + 1
	return true
}

// startTag reads a start tag and, if its element has raw text, that text and the end tag too. It reports false if the
// document ends within the tag, which then is none.
func (s *scanner) startTag() bool {
	s.tag = s.name()
	if !s.attributes() {
		return false
	}
	s.content, s.space = nil, inHTML
	if s.nest.depth > 0 || s.tag == tagSVG || s.tag == tagMath { // hardly ever
		s.space = s.nest.open(s)
	}
	if s.space == inHTML && s.tag >= firstRaw && (!s.xml || s.tag == tagTitle && !s.selfClosing) {
		s.rawText()
	}
	return true
}

// endTag reads an end tag. It reports whether that was asked for.
func (s *scanner) endTag() bool {
	switch {
	case s.pos == len(s.src):
	case isLetter(s.src[s.pos]):
		name := s.name()
		s.tag = tagOther
		if s.attributes() {
			s.tag, s.closing = name, true
			if s.nest.depth > 0 {
				s.nest.close(name, s.xml)
			}
			return s.ends&(1<<name) != 0
		}
	default:
		s.skipPast('>')
	}
	return false
}

// declaration reads what begins with "<!": a comment, a CDATA section, a doctype or what counts as a comment.
func (s *scanner) declaration() {
	rest := s.src[s.pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("--")):
		s.comment()
	case (s.xml || s.nest.foreign()) && bytes.HasPrefix(rest, []byte("[CDATA[")):
		if i := bytes.Index(rest, []byte("]]>")); i >= 0 {
			s.pos += i + 3
		} else {
			s.pos = len(s.src)
		}
	default:
		s.skipPast('>')
	}
}

// comment reads to the end of a comment: "-->" or "--!>", where the dashes of "-->" may be those of the beginning.
func (s *scanner) comment() {
	start := s.pos
	for s.skipPast('>') {
		text := s.src[start : s.pos-1]
		if bytes.HasSuffix(text, []byte("--")) || len(text) >= 5 && bytes.HasSuffix(text, []byte("--!")) {
			return
		}
	}
}

// name reads a tag's name.
func (s *scanner) name() tag {
	i, key := s.pos, uint64(0)
	for ; i < len(s.src) && class[s.src[i]]&endsTagName == 0; i++ {
		key = key<<8 | uint64(lowerCase[s.src[i]])
	}
	name := s.src[s.pos:i]
	s.pos = i
	return tags.find(name, key)
}

// attributes reads to the end of the tag. It reports false if the document ends first.
func (s *scanner) attributes() bool {
	s.have, s.selfClosing = 0, false
	if s.pos < len(s.src) && s.src[s.pos] == '>' { // nearly always
		s.pos++
		return true
	}
	for i := s.pos; i < len(s.src); {
		switch c := s.src[i]; {
		case c == '>':
			s.pos = i + 1
			return true
		case c == '/':
			i++
			s.selfClosing = i < len(s.src) && s.src[i] == '>'
		case isSpace(c):
			i++
		default:
			i = s.attribute(i)
		}
	}
	s.pos = len(s.src)
	return false
}

// attribute reads the attribute at i and returns where it ends. The first of several with one name counts.
func (s *scanner) attribute(i int) int {
	start, key := i, uint64(lowerCase[s.src[i]])
	for i++; i < len(s.src) && class[s.src[i]]&endsAttrName == 0; i++ { // even a "=" can begin a name
		key = key<<8 | uint64(lowerCase[s.src[i]])
	}
	name := s.src[start:i]
	if i < len(s.src) && s.src[i] != '=' {
		i = s.skipSpace(i)
	}
	var value []byte
	if i < len(s.src) && s.src[i] == '=' {
		value, i = s.value(s.skipSpace(i + 1))
	}
	if !s.tag.known() {
		if len(name) == len("style") && namesSomething(value) && equalFold(name, "style") {
			s.have |= 1 << attrStyle
			s.values[attrStyle] = value
		}
		return i
	}
	if a := attrs.find(name, key); a != attrOther && s.have&(1<<a) == 0 {
		s.have |= 1 << a
		s.values[a] = value
	}
	return i
}

// namesSomething reports whether a style may have a url() in it.
func namesSomething(style []byte) bool { return len(style) > 4 && bytes.IndexByte(style, '(') >= 0 }

// value reads the attribute value at i and returns where it ends.
func (s *scanner) value(i int) (value []byte, end int) {
	if i == len(s.src) {
		return nil, i
	}
	if quote := s.src[i]; quote == '"' || quote == '\'' {
		n := bytes.IndexByte(s.src[i+1:], quote)
		if n < 0 {
			return nil, len(s.src)
		}
		return s.src[i+1 : i+1+n], i + n + 2
	}
	start := i
	for i < len(s.src) && class[s.src[i]]&endsValue == 0 {
		i++
	}
	return s.src[start:i], i
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

// lowerCase has each byte in lower case.
var lowerCase = func() (t [256]byte) {
	for c := range t {
		t[c] = toLower(byte(c))
	}
	return t
}()

func isSpace(c byte) bool  { return class[c]&space != 0 }
func isLetter(c byte) bool { return class[c]&letter != 0 }
