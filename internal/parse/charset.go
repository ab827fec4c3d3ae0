package parse

import (
	"bytes"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// A charset is an encoding with its name in the WHATWG Encoding Standard.
type charset struct {
	name string
	enc  encoding.Encoding
}

var (
	utf8Charset = charset{"utf-8", unicode.UTF8}
	windows1252 = charset{"windows-1252", charmap.Windows1252}
)

// lookup finds a charset by one of its labels.
func lookup(label []byte) (cs charset, ok bool) {
	const longest = 64 // longer than any label
	label = bytes.Trim(label, " \t\n\r\f")
	if len(label) > longest {
		return charset{}, false
	}
	enc, err := htmlindex.Get(string(label))
	if err != nil {
		return charset{}, false
	}
	name, err := htmlindex.Name(enc)
	return charset{name, enc}, err == nil
}

// metaLabel finds the charset that a label in a document's own markup means. It cannot be UTF-16, or the label could not have
// been read.
func metaLabel(label []byte) (cs charset, ok bool) {
	cs, ok = lookup(label)
	switch cs.name {
	case "utf-16le", "utf-16be":
		return utf8Charset, ok
	case "x-user-defined":
		return windows1252, ok
	}
	return cs, ok
}

// asciiBased reports whether markup can be read as it stands. In these charsets "<", ">", quotes, "&", "=", "/" and space are
// always that and never part of another character: bytes below 0x30 are no part of one, and those from 0x3A to 0x3F neither.
func (c charset) asciiBased() bool {
	switch c.name {
	case "utf-16le", "utf-16be", "iso-2022-jp", "replacement":
		return false
	}
	return true
}

// isLegacy reports whether URLs in a document have their query in its charset. Otherwise it is UTF-8.
func (c charset) isLegacy() bool {
	switch c.name {
	case "utf-8", "utf-16le", "utf-16be", "replacement":
		return false
	}
	return true
}

// decode appends the body in UTF-8 to dst. That is at most three bytes for one.
func (c charset) decode(dst, body []byte) []byte {
	dst, _, _ = transform.Append(c.enc.NewDecoder(), dst, body) // replaces what is wrong and does not fail
	return dst
}

// sniff names the charset of a body by the HTML standard's encoding sniffing algorithm: byte order mark, Content-Type, what a
// meta element near the beginning says. Failing these it is a guess, UTF-8 if the body is that, which a later meta element may
// correct. The text is the body without byte order mark.
func sniff(body []byte, contentType string) (cs charset, text []byte, tentative bool) {
	switch {
	case bytes.HasPrefix(body, []byte("\xEF\xBB\xBF")):
		return utf8Charset, body[3:], false
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		cs, _ = lookup([]byte("utf-16be"))
		return cs, body[2:], false
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		cs, _ = lookup([]byte("utf-16le"))
		return cs, body[2:], false
	}
	if label, ok := charsetIn([]byte(contentType)); ok {
		if cs, ok := lookup(label); ok {
			return cs, body, false
		}
	}
	if cs, ok := prescan(body); ok {
		return cs, body, false
	}
	if utf8.Valid(wholeRunes(body)) {
		return utf8Charset, body, true
	}
	return windows1252, body, true
}

// wholeRunes is the body without a character that is cut off at its end.
func wholeRunes(body []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if tail := body[len(body)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return body[:len(body)-n]
			}
			break
		}
	}
	return body
}

// charsetIn finds the label in text like "text/html; charset=utf-8", by the standard's "algorithm for extracting a character
// encoding from a meta element".
func charsetIn(in []byte) (label []byte, ok bool) {
	for {
		i := indexFold(in, "charset")
		if i < 0 {
			return nil, false
		}
		in = trimLeft(in[i+len("charset"):])
		if len(in) > 0 && in[0] == '=' {
			break
		}
	}
	in = trimLeft(in[1:])
	if len(in) == 0 {
		return nil, false
	}
	if in[0] == '"' || in[0] == '\'' {
		end := bytes.IndexByte(in[1:], in[0])
		if end < 0 {
			return nil, false
		}
		return in[1 : 1+end], true
	}
	return in[:indexAny(in, "; \t\n\r\f")], true
}

// indexFold is where lower, which is in lower case, begins in the text in any case, or -1.
func indexFold(text []byte, lower string) int {
	for i := 0; i+len(lower) <= len(text); i++ {
		if equalFold(text[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}
