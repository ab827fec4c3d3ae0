package parse

import (
	"bytes"
	"encoding/binary"
	"html"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/transform"
)

// maxValue limits the bytes of an attribute or a title that are read. URLs are shorter; a long srcset loses its end.
const maxValue = 256 << 10

// text converts pieces of the markup to UTF-8. Results are valid until the next reset.
type text struct {
	state   textState
	body    []byte // the document, if it should be UTF-8
	decoder transform.Transformer
	encoder *encoding.Encoder // for queries; nil: UTF-8
	buf     []byte            // only grows until reset, so that earlier pieces stay valid
}

// A textState is the knowledge about a document's encoding. Validating a whole document takes as long as finding its
// links, and most of it is never used. So validation is postponed until a piece is invalid, perhaps only because it was
// cut within a character.
type textState uint8

const (
	foreign textState = iota // another charset or invalid UTF-8: non-ASCII pieces are decoded
	assumed                  // presumably UTF-8: each piece is validated
	plain                    // valid UTF-8: pieces are used without a check
)

// init begins a document. Its text is read in the charset in; its own charset is cs.
func (t *text) init(cs, in charset, body []byte) {
	t.state, t.body, t.encoder, t.decoder = foreign, nil, nil, nil
	if cs.isLegacy() {
		t.encoder = cs.enc.NewEncoder()
	}
	if in == utf8Charset {
		t.state, t.body = assumed, body
	} else {
		t.decoder = in.enc.NewDecoder().Transformer
	}
}

// asIs reports whether a piece of the document can be used unchanged.
func (t *text) asIs(raw []byte) bool {
	switch {
	case t.state == plain || isASCII(raw):
		return true
	case t.state == foreign:
		return false
	case isText(raw):
		return true
	}
	t.validate()
	return t.state == plain
}

// validate checks whether the whole document is UTF-8.
func (t *text) validate() {
	if isText(t.body) {
		t.state = plain
		return
	}
	t.state, t.decoder = foreign, utf8Charset.enc.NewDecoder().Transformer
}

// cut cuts a piece of the document to at most max bytes. In UTF-8, it cuts between characters.
func (t *text) cut(raw []byte, max int) []byte {
	if t.body != nil {
		return cut(raw, max)
	}
	return raw[:min(len(raw), max)]
}

// isText reports whether the text is UTF-8 without NUL.
func isText(text []byte) bool { return bytes.IndexByte(text, 0) < 0 && utf8.Valid(text) }

func (t *text) reset() { t.buf = t.buf[:0] }

func (t *text) release() {
	t.body, t.decoder, t.encoder = nil, nil, nil
	if cap(t.buf) > maxKept {
		t.buf = nil
	}
}

// attr returns the value of an attribute.
func (t *text) attr(raw []byte) []byte {
	value := t.decode(raw)
	first := bytes.IndexByte(value, '&')
	if first < 0 {
		return value
	}
	start := len(t.buf)
	t.buf = appendUnescaped(t.buf, value, first)
	return t.buf[start:]
}

// content returns the text of an element that contains no markup.
func (t *text) content(raw []byte) string { return html.UnescapeString(string(t.decode(raw))) }

// decode returns a piece of the document in UTF-8. NUL is not a character in HTML.
func (t *text) decode(raw []byte) []byte {
	raw = raw[:min(len(raw), maxValue)]
	if t.asIs(raw) {
		return raw
	}
	start := len(t.buf)
	t.buf, _, _ = transform.Append(t.decoder, t.buf, raw) // decoders replace invalid bytes and do not fail
	value := t.buf[start:]
	if bytes.IndexByte(value, 0) >= 0 {
		return bytes.ReplaceAll(value, []byte{0}, []byte("\uFFFD"))
	}
	return value
}

// isASCII reports whether the text is ASCII without NUL.
func isASCII(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if x := binary.LittleEndian.Uint64(text); (x|(x-ones))&highs != 0 { // NUL borrows, and so may bytes above it
			return false
		}
	}
	for _, c := range text {
		if c-1 >= 0x7F {
			return false
		}
	}
	return true
}

// collapse replaces each run of white space with one space, trims the ends, and cuts the text to max bytes.
func collapse(text string, max int) string {
	var out []byte
	gap := false
	for i := 0; i < len(text) && len(out) <= max; i++ {
		if isSpace(text[i]) {
			gap = len(out) > 0
			continue
		}
		if gap {
			out = append(out, ' ')
			gap = false
		}
		out = append(out, text[i])
	}
	return string(bytes.TrimRight(cut(out, max), " "))
}

// cut cuts UTF-8 text to at most max bytes, between two characters.
func cut(text []byte, max int) []byte {
	if len(text) <= max {
		return text
	}
	for max > 0 && !utf8.RuneStart(text[max]) {
		max--
	}
	return text[:max]
}
