package feed

import (
	"bufio"
	"html"
	"strings"
)

const (
	maxText  = 16 << 10 // bytes of an element's text that are kept; URLs are shorter
	maxAttrs = 32       // attributes of an element that are kept
	maxName  = 64       // bytes of a name that are kept
)

// A scanner reads XML from tag to tag.
type scanner struct {
	in *bufio.Reader

	name  string // of the current tag, without prefix
	end   bool   // it is an end tag
	empty bool   // the element is empty: both start and end tag
	attrs []attr
	text  []byte // text before the tag

	names map[string]string // interned names
	word  []byte
}

type attr struct{ name, value string }

func (s *scanner) attr(name string) string {
	for _, a := range s.attrs {
		if strings.EqualFold(a.name, name) {
			return a.value
		}
	}
	return ""
}

// content returns the text before the tag, with references replaced and trimmed.
func (s *scanner) content() string { return trim(html.UnescapeString(string(s.text))) }

// next reads up to the end of the next tag.
func (s *scanner) next() error {
	s.text = s.text[:0]
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		if c != '<' {
			s.appendText(c)
			continue
		}
		if c, err = s.in.ReadByte(); err != nil {
			return err
		}
		switch c {
		case '!':
			err = s.declaration()
		case '?':
			err = s.until("?>", nil)
		case ' ', '\t', '\r', '\n', '=', '<': // not a tag
			s.appendText('<')
			s.appendText(c)
		default:
			return s.tag(c)
		}
		if err != nil {
			return err
		}
	}
}

func (s *scanner) appendText(c byte) {
	if len(s.text) < maxText {
		s.text = append(s.text, c)
	}
}

// declaration reads a construct that begins with "<!": a comment, a CDATA section, which is text, or a document type.
func (s *scanner) declaration() error {
	head, _ := s.in.Peek(len("[CDATA["))
	switch {
	case strings.HasPrefix(string(head), "--"):
		if _, err := s.in.Discard(2); err != nil {
			return err
		}
		return s.until("-->", nil)
	case string(head) == "[CDATA[":
		if _, err := s.in.Discard(len(head)); err != nil {
			return err
		}
		return s.until("]]>", s.appendText) // references in it are also replaced, since authors rarely mean a literal "&amp;"
	}
	return s.doctype()
}

// until reads past end, whose bytes are all equal except the last. It passes the bytes before end to keep.
func (s *scanner) until(end string, keep func(byte)) error {
	matched := 0
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return err
		}
		switch {
		case c == end[matched]:
			if matched++; matched == len(end) {
				return nil
			}
			continue
		case matched == len(end)-1 && c == end[0]: // "]]]>", "--->"
			if keep != nil {
				keep(c)
			}
			continue
		}
		if keep != nil {
			for i := range matched {
				keep(end[i])
			}
			keep(c)
		}
		matched = 0
	}
}

// doctype reads a document type and its declarations in brackets. It ignores entities, since they allow XML bombs.
func (s *scanner) doctype() error {
	inBrackets := false
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return err
		case c == '[':
			inBrackets = true
		case c == ']':
			inBrackets = false
		case c == '>' && !inBrackets:
			return nil
		}
	}
}

// tag reads a tag whose first byte is c.
func (s *scanner) tag(c byte) (err error) {
	s.attrs, s.end, s.empty = s.attrs[:0], c == '/', false
	if s.end {
		if c, err = s.in.ReadByte(); err != nil {
			return err
		}
	}
	if s.name, c, err = s.readName(c); err != nil {
		return err
	}
	for {
		switch {
		case c == '>':
			return nil
		case c == '/' || isSpace(c):
			s.empty = c == '/'
			c, err = s.in.ReadByte()
		default:
			s.empty = false
			c, err = s.attribute(c)
		}
		if err != nil {
			return err
		}
	}
}

// attribute reads an attribute whose name begins with c, and returns the byte after it.
func (s *scanner) attribute(c byte) (byte, error) {
	name, c, err := s.readName(c)
	for err == nil && isSpace(c) {
		c, err = s.in.ReadByte()
	}
	if err != nil || c != '=' {
		return c, err
	}
	for c, err = s.in.ReadByte(); err == nil && isSpace(c); {
		c, err = s.in.ReadByte()
	}
	if err != nil || c != '"' && c != '\'' {
		return c, err
	}
	quote := c
	s.word = s.word[:0]
	for {
		if c, err = s.in.ReadByte(); err != nil {
			return c, err
		}
		if c == quote {
			break
		}
		if len(s.word) < maxText {
			s.word = append(s.word, c)
		}
	}
	if len(s.attrs) < maxAttrs {
		s.attrs = append(s.attrs, attr{name, trim(html.UnescapeString(string(s.word)))})
	}
	return s.in.ReadByte()
}

// readName reads a name that begins with c. It returns the name without its prefix, and the byte after it.
func (s *scanner) readName(c byte) (name string, after byte, err error) {
	s.word = s.word[:0]
	for first := true; first || !isSpace(c) && c != '>' && c != '/' && c != '='; first = false {
		if first && c == '>' {
			break
		}
		if c == ':' {
			s.word = s.word[:0]
		} else if len(s.word) < maxName {
			s.word = append(s.word, c)
		}
		if c, err = s.in.ReadByte(); err != nil {
			return "", c, err
		}
	}
	return s.intern(), c, nil
}

// intern returns the word as a string. Equal words share a string, up to a limit.
func (s *scanner) intern() string {
	if name, ok := s.names[string(s.word)]; ok {
		return name
	}
	name := string(s.word)
	if s.names == nil {
		s.names = make(map[string]string)
	}
	if len(s.names) < 1000 {
		s.names[name] = name
	}
	return name
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func trim(s string) string { return strings.Trim(s, " \t\r\n\uFEFF") }
