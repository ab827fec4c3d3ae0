package xml

import (
	"bufio"
	"bytes"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// ErrDamaged reports a damaged document.
var ErrDamaged = errors.New("damaged XML")

// Parse parses a line as [Append] writes it, with or without its end. It ignores unknown elements. It is not a general
// XML parser.
func Parse(line []byte) (r Record, err error) {
	text, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte("\n")), []byte(begin))
	if text, ok = cutSuffix(text, ok); !ok {
		return r, fmt.Errorf("line is not a page: %w", ErrDamaged)
	}
	for len(text) > 0 {
		var e element
		if e, text, err = cutElement(text); err == nil {
			err = r.set(&e)
		}
		if err != nil {
			return r, err
		}
	}
	if r.URL == "" || r.Fetched.IsZero() {
		return r, fmt.Errorf("page without URL or time: %w", ErrDamaged)
	}
	return r, nil
}

func cutSuffix(text []byte, ok bool) ([]byte, bool) {
	rest, whole := bytes.CutSuffix(text, []byte(end))
	return rest, ok && whole
}

// set sets the field for an element.
func (r *Record) set(e *element) (err error) {
	switch e.name {
	case "url":
		r.URL = e.text
	case "fetched":
		r.Fetched, err = time.Parse(time.RFC3339, e.text)
	case "directory":
		r.Directory = e.text
	case "encoding":
		r.Encoding, r.EncodingFrom = e.text, e.attribute("from")
	case "language":
		r.Language = e.text
		var share, sure float64
		share, err = strconv.ParseFloat(e.attribute("share"), 32)
		if err == nil {
			sure, err = strconv.ParseFloat(e.attribute("confidence"), 32)
		}
		r.Share, r.Confidence = float32(share), float32(sure)
	case "digest":
		var sum []byte
		sum, err = base32.StdEncoding.DecodeString(strings.TrimPrefix(e.text, "sha1:"))
		if copy(r.Digest[:], sum) != len(r.Digest) || len(sum) != len(r.Digest) {
			err = errors.New("no SHA-1")
		}
	case "simhash":
		r.Simhash, err = strconv.ParseUint(e.text, 16, 64)
	case "headline":
		r.Headline = e.text
	case "content":
		r.Content = e.text
	}
	if err != nil {
		return fmt.Errorf("%s %.40q: %w", e.name, e.text, ErrDamaged)
	}
	return nil
}

// An element is an element of a page.
type element struct {
	name       string
	attributes []byte
	text       string
}

// cutElement splits off an element: <name attributes>text</name>.
func cutElement(b []byte) (e element, rest []byte, err error) {
	open, rest, ok := bytes.Cut(b, []byte(">"))
	text, rest, ok2 := bytes.Cut(rest, []byte("</"))
	closing, rest, ok3 := bytes.Cut(rest, []byte(">"))
	name, attributes, _ := bytes.Cut(bytes.TrimPrefix(open, []byte("<")), []byte(" "))
	if !ok || !ok2 || !ok3 || !bytes.HasPrefix(open, []byte("<")) || !bytes.Equal(closing, name) {
		return e, nil, fmt.Errorf("at %.40q: %w", b, ErrDamaged)
	}
	e = element{name: string(name), attributes: attributes}
	e.text, err = unescape(text)
	return e, rest, err
}

// attribute returns the value of an attribute, or "".
func (e *element) attribute(name string) string {
	for rest := e.attributes; len(rest) > 0; {
		var this, value []byte
		this, rest, _ = bytes.Cut(rest, []byte(`="`))
		value, rest, _ = bytes.Cut(rest, []byte(`"`))
		if string(bytes.TrimSpace(this)) == name {
			text, _ := unescape(value) // of a damaged value, the valid part
			return text
		}
	}
	return ""
}

var entities = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"', "apos": '\''}

// unescape decodes the content of an element.
func unescape(b []byte) (string, error) {
	before, rest, more := bytes.Cut(b, []byte("&"))
	if !more {
		return string(b), nil
	}
	text := make([]byte, 0, len(b))
	for text = append(text, before...); more; text = append(text, before...) {
		name, _, ok := bytes.Cut(rest[:min(len(rest), maxEntity)], []byte(";"))
		c, known := entities[string(name)]
		if number, isNumber := bytes.CutPrefix(name, []byte("#")); isNumber {
			n, err := strconv.ParseInt(string(number), 10, 32)
			c, known = rune(n), err == nil && utf8.ValidRune(rune(n))
		}
		if !ok || !known {
			return "", fmt.Errorf("at &%.20q: %w", rest, ErrDamaged)
		}
		text = utf8.AppendRune(text, c)
		before, rest, more = bytes.Cut(rest[len(name)+1:], []byte("&"))
	}
	return string(text), nil
}

const (
	maxEntity = 12      // maximum length of an entity, in bytes
	maxLine   = 1 << 30 // maximum length of a record, in bytes
)

// A Reader reads the records of a document.
type Reader struct {
	in   *bufio.Reader
	at   int64 // bytes read so far
	line []byte
}

// NewReader returns a Reader of a document, or of a part of a document that begins with a record.
func NewReader(src io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(src, 64<<10)} }

// Next returns the line of the next record, valid until the next call, and its offset. It returns io.EOF after the last
// record if the document is complete.
func (r *Reader) Next() (line []byte, offset int64, err error) {
	for {
		offset = r.at
		if err := r.readLine(); err != nil {
			return nil, offset, err
		}
		switch {
		case bytes.HasPrefix(r.line, []byte(begin)):
			return r.line, offset, nil
		case string(r.line) == Footer:
			return nil, offset, io.EOF
		case !bytes.HasPrefix(r.line, []byte("<?xml")) && !bytes.HasPrefix(r.line, []byte("<pages")):
			return nil, offset, fmt.Errorf("line at byte %d: %w", offset, ErrDamaged)
		}
	}
}

func (r *Reader) readLine() error {
	r.line = r.line[:0]
	for {
		piece, err := r.in.ReadSlice('\n')
		r.line = append(r.line, piece...)
		r.at += int64(len(piece))
		switch {
		case err == nil:
			return nil
		case len(r.line) > maxLine:
			return fmt.Errorf("line of more than %d bytes: %w", maxLine, ErrDamaged)
		case errors.Is(err, io.EOF):
			return fmt.Errorf("document is incomplete: %w", ErrDamaged)
		case !errors.Is(err, bufio.ErrBufferFull):
			return err
		}
	}
}
