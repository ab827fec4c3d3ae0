package office

import (
	"bufio"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"kumo/internal/content/document"
)

// maxToken is how many bytes of XML one token may have: a tag, a text between tags, a comment.
const maxToken = 8 << 20

// An xmlReader reads the elements of an XML file. It expands no entities but those of XML itself.
type xmlReader struct {
	name  string
	d     *xml.Decoder
	src   *tokenSource
	depth int
	max   int // of depth
}

// A tokenSource limits the bytes that are read for one token.
type tokenSource struct {
	r io.Reader
	n int
}

func (s *tokenSource) Read(b []byte) (int, error) {
	if s.n > maxToken {
		return 0, document.Errorf(document.TooLarge, "a tag or text has more than %d bytes", maxToken)
	}
	n, err := s.r.Read(b)
	s.n += n
	return n, err
}

// xml calls a function with the root element of an entry.
func (a *archive) xml(name string, read func(x *xmlReader, root *xml.StartElement) error) error {
	e, err := a.open(name)
	if err != nil {
		return err
	}
	defer e.close()
	x := &xmlReader{name: name, max: a.limits.Depth}
	x.src = &tokenSource{r: e}
	x.d = xml.NewDecoder(bufio.NewReader(transform.NewReader(x.src, unicode.BOMOverride(transform.Nop))))
	x.d.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		if strings.HasPrefix(strings.ToLower(label), "utf-16") {
			return in, nil // it has a byte order mark and is UTF-8 by now
		}
		return charset.NewReaderLabel(label, in)
	}
	for {
		t, err := x.token()
		if err != nil {
			return err
		}
		if root, is := t.(xml.StartElement); is {
			return read(x, &root)
		}
	}
}

// xmlIf is xml for an entry that need not be there.
func (a *archive) xmlIf(name string, read func(x *xmlReader, root *xml.StartElement) error) error {
	if name == "" || !a.has(name) {
		return nil
	}
	return a.xml(name, read)
}

// token returns the next token. Its bytes are valid until the next call.
func (x *xmlReader) token() (xml.Token, error) {
	x.src.n = 0
	t, err := x.d.Token()
	if err != nil {
		var known *document.Error
		if errors.As(err, &known) {
			return nil, known
		}
		return nil, document.Errorf(document.Broken, "read entry %s: %w", clip(x.name), err)
	}
	switch t.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > x.max {
			return nil, document.Errorf(document.TooLarge, "entry %s has more than %d nested elements", clip(x.name), x.max)
		}
	case xml.EndElement:
		x.depth--
	}
	return t, nil
}

// each reads the content of the current element. It calls start for each child, whose own content start may read or
// leave, and text for each text between children. Both may be nil.
func (x *xmlReader) each(start func(e *xml.StartElement) error, text func(s []byte)) error {
	base := x.depth
	for {
		t, err := x.token()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if start != nil {
				if err := start(&t); err != nil {
					return err
				}
			}
			if err := x.leave(base); err != nil {
				return err
			}
		case xml.EndElement:
			if x.depth < base {
				return nil
			}
		case xml.CharData:
			if text != nil {
				text(t)
			}
		}
	}
}

// leave reads up to the end of the element at depth base+1.
func (x *xmlReader) leave(base int) error {
	for x.depth > base {
		if _, err := x.token(); err != nil {
			return err
		}
	}
	return nil
}

// find calls found for each descendant of the current element with one of the names. It does not look inside them.
func (x *xmlReader) find(found func(e *xml.StartElement) error, names ...string) error {
	return x.each(func(e *xml.StartElement) error {
		for _, n := range names {
			if e.Name.Local == n {
				return found(e)
			}
		}
		return x.find(found, names...)
	}, nil)
}

// text returns the text of the current element and its descendants, with white space collapsed, up to max bytes.
func (x *xmlReader) text(max int) (string, error) {
	var p paragraph
	add := func(s []byte) {
		if len(p.text) < max {
			p.write(s)
		}
	}
	var inside func(e *xml.StartElement) error
	inside = func(*xml.StartElement) error { return x.each(inside, add) }
	err := x.each(inside, add)
	if len(p.text) > max {
		p.text = p.text[:max]
	}
	return strings.ToValidUTF8(string(p.text), ""), err
}

// attr returns the value of the first attribute with a local name.
func attr(e *xml.StartElement, local string) string {
	for i := range e.Attr {
		if e.Attr[i].Name.Local == local {
			return e.Attr[i].Value
		}
	}
	return ""
}

// relation returns the value of an attribute that names a relation of the part, such as r:id.
func relation(e *xml.StartElement, local string) string {
	for i := range e.Attr {
		if a := &e.Attr[i]; a.Name.Local == local && (strings.HasSuffix(a.Name.Space, "/relationships") ||
			a.Name.Space == "r") {
			return a.Value
		}
	}
	return ""
}
