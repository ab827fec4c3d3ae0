package parse

import (
	"bytes"
	"regexp"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	"kumo/internal/content/chardet"
)

// A charset is an encoding with its name in the WHATWG Encoding Standard.
type charset struct {
	name string
	enc  encoding.Encoding
}

var (
	utf8Charset = charset{"utf-8", unicode.UTF8}
	windows1252 = charset{"windows-1252", charmap.Windows1252}
	utf32LE     = charset{"utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}
	utf32BE     = charset{"utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}
)

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

// metaLabel returns the charset for a label in a document's own markup. UTF-16 becomes UTF-8, since the label could not
// have been read otherwise.
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

// asciiBased reports whether markup can be parsed without decoding. In these charsets the bytes of "<", ">", quotes,
// "&", "=", "/" and space are never part of another character: no byte below 0x30 is, and none from 0x3A to 0x3F.
func (c charset) asciiBased() bool {
	switch c.name {
	case "utf-16le", "utf-16be", "utf-32le", "utf-32be", "iso-2022-jp", "replacement":
		return false
	}
	return true
}

// isLegacy reports whether the queries of URLs in a document are in its charset. Otherwise they are in UTF-8.
func (c charset) isLegacy() bool {
	switch c.name {
	case "utf-8", "utf-16le", "utf-16be", "utf-32le", "utf-32be", "replacement":
		return false
	}
	return true
}

// decode appends the body in UTF-8 to dst: at most three bytes for each byte.
func (c charset) decode(dst, body []byte) []byte {
	dst, _, _ = transform.Append(c.enc.NewDecoder(), dst, body) // replaces invalid bytes and does not fail
	return dst
}

// UTF8 returns a body in UTF-8. name is the charset's name in a [page.Page]. It removes a byte order mark and replaces
// invalid bytes. The result has at most three times the body's bytes.
func UTF8(body []byte, name string) []byte {
	if g := declared(body, ""); g.how == howMark {
		return g.decode(nil, g.text)
	}
	return detected(name).decode(nil, body)
}

// XMLText returns an XML body in UTF-8, like UTF8. contentType is its Content-Type field.
func XMLText(body []byte, contentType string) []byte {
	if g := declared(body, ""); g.how == howMark {
		return g.decode(nil, g.text)
	}
	cs, _ := xmlCharset(body, contentType)
	return cs.decode(nil, body)
}

// Sources of a charset.
const (
	howMark     = "bom"
	howHeader   = "header"
	howMeta     = "meta"
	howDetected = "detected"
	howDefault  = "default"
)

// A Charset is the charset of a body, with its source.
type Charset struct {
	// in the WHATWG Encoding Standard, in lower case; the IANA name if the standard lacks a detected charset
	Name       string
	How        string  // "bom", "header", "meta", "detected" or "default"
	Confidence float64 // from 0 to 1
}

// DetectCharset determines the charset of an HTML body with this Content-Type field. It uses the standard's encoding
// sniffing algorithm and then the text itself. It does not see a meta element after the first kilobyte.
func DetectCharset(body []byte, contentType string) Charset {
	g := sniff(body, contentType)
	return Charset{g.charset.name, g.how, g.confidence}
}

// A guess is the charset of a text, with the confidence in it.
type guess struct {
	charset
	how        string
	confidence float64
	text       []byte // the body without byte order mark
}

// tentative reports whether a later meta element may correct the guess.
func (g guess) tentative() bool { return g.how == howDetected || g.how == howDefault }

// sniff determines the charset of an HTML body by the HTML standard's encoding sniffing algorithm: byte order mark,
// Content-Type, a meta element near the beginning. Otherwise it guesses from the text.
func sniff(body []byte, contentType string) guess {
	if g := declared(body, contentType); g.how != "" {
		return g
	}
	if cs, ok := prescan(body); ok {
		return guess{cs, howMeta, 0.95, body}
	}
	return detect(body)
}

func sniffPlain(body []byte, contentType string) guess {
	if g := declared(body, contentType); g.how != "" {
		return g
	}
	return detect(body)
}

// declared returns the charset of a byte order mark or of Content-Type.
func declared(body []byte, contentType string) guess {
	for _, m := range byteOrderMarks {
		if bytes.HasPrefix(body, []byte(m.mark)) {
			return guess{m.charset, howMark, 1, body[len(m.mark):]}
		}
	}
	if label, ok := charsetIn([]byte(contentType)); ok {
		if cs, ok := lookup(label); ok {
			return guess{cs, howHeader, 0.95, body}
		}
	}
	return guess{}
}

// byteOrderMarks include UTF-32, which the standard omits since browsers do not support it. In UTF-16 the same bytes
// would begin a text with NUL, which no text contains.
var byteOrderMarks = []struct {
	mark    string
	charset charset
}{
	{"\xEF\xBB\xBF", utf8Charset},
	{"\xFF\xFE\x00\x00", utf32LE},
	{"\x00\x00\xFE\xFF", utf32BE},
	{"\xFE\xFF", charset{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}},
	{"\xFF\xFE", charset{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}},
}

// minConfidence is the lowest confidence at which a detected charset is used.
const minConfidence = 0.4

// detect guesses a charset from the text: UTF-8 if the text is valid UTF-8, unless it looks like a charset that uses
// the same bytes.
func detect(body []byte) guess {
	valid := chardet.IsUTF8(body)
	switch {
	case valid && bytes.IndexByte(body, 0) < 0 && bytes.IndexByte(body, 0x1B) < 0:
		if isASCII(body) {
			return guess{utf8Charset, howDefault, 0, body}
		}
		return guess{utf8Charset, howDetected, 0.99, body}
	case len(body) == 0:
		return guess{utf8Charset, howDefault, 0, body}
	}
	r := chardet.DetectIn(body, declaredLang(body))
	switch {
	case r.Name != "" && r.Confidence >= minConfidence:
		return guess{detected(r.Name), howDetected, r.Confidence, body}
	case valid:
		return guess{utf8Charset, howDefault, 0, body}
	}
	return guess{windows1252, howDefault, 0, body}
}

// declaredLang returns the language of the html element near the beginning, without region. English is "": pages in
// other languages often have it from a template.
func declaredLang(body []byte) string {
	head := body[:min(len(body), prescanSize)]
	at := indexFold(head, "<html")
	if at < 0 {
		return ""
	}
	tag, _, _ := bytes.Cut(head[at:], []byte(">"))
	m := langAttr.FindSubmatch(tag)
	if m == nil {
		return ""
	}
	lang := strings.ToLower(string(m[1]))
	if lang == "en" {
		return ""
	}
	return lang
}

var langAttr = regexp.MustCompile(`(?i)\blang\s*=\s*["']?([a-z]{2})\b`)

// detected returns the charset for a name that chardet returned. For an unsupported charset it returns a charset that
// preserves ASCII.
func detected(name string) charset {
	switch name {
	case "utf-32le":
		return utf32LE
	case "utf-32be":
		return utf32BE
	case "ibm852":
		return charset{name, charmap.CodePage852}
	case "ibm855":
		return charset{name, charmap.CodePage855}
	case "iso-2022-kr", "euc-tw", "viscii":
		return charset{name, charmap.Windows1252}
	}
	if cs, ok := lookup([]byte(name)); ok {
		return cs
	}
	return windows1252
}

// charsetIn returns the label in text like "text/html; charset=utf-8", by the standard's "algorithm for extracting a
// character encoding from a meta element".
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

// indexFold returns the index of lower, which must be in lower case, in the text in any case, or -1.
func indexFold(text []byte, lower string) int {
	for i := 0; i+len(lower) <= len(text); i++ {
		if equalFold(text[i:i+len(lower)], lower) {
			return i
		}
	}
	return -1
}
