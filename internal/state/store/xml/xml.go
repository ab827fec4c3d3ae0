// Package xml writes the pages of a batch crawl as XML, for search engines and other indexers.
//
// A document has one page per line, and each line is well-formed by itself:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<pages …>
//	<page><url>…</url><fetched>2026-11-21T03:04:05Z</fetched><directory>crawler_de</directory><encoding from="meta">…
//	</pages>
//
// [Schema] describes the content in machine-readable form. Its file lies beside the folders of days.
package xml

import (
	_ "embed"
	"encoding/base32"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"kumo/internal/base/page"
)

// A Record is one page.
type Record struct {
	URL          string
	Fetched      time.Time // to the second
	Directory    string    // of the collection: "crawler_de"
	Encoding     string    // the charset that the page was written in, its WHATWG name
	EncodingFrom string    // how that is known: "bom", "header", "meta", "detected", "default", "" if nobody says
	Language     string    // that most of its text is in: ISO 639-1 or 639-3, "other"; "" if not known
	Share        float32   // of its text that is in Language, 0 to 1, written with three decimals
	Confidence   float32   // in Language, likewise
	Digest       page.Digest
	Simhash      uint64 // of its text; 0 without
	Headline     string
	Content      string // the main text, a line a paragraph
}

// Schema is the XML schema of documents, and SchemaName the name of its file, which documents refer to in the folder
// above theirs. What an older reader would get wrong makes it another version.
//
//go:embed kumo-batch-1.xsd
var Schema []byte

// SchemaName is the name of its file; see Schema.
const SchemaName = "kumo-batch-1.xsd"

// What a document has around its records.
const (
	Header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n" +
		`<pages xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="../` + SchemaName +
		`">` + "\n"
	Footer = "</pages>\n"
)

const (
	begin = "<page>"
	end   = "</page>"
)

// Append appends a record as one line. Characters that XML has no way to write become U+FFFD, as does what is not
// UTF-8, see [Clean].
func Append(dst []byte, r *Record) []byte {
	dst = append(dst, begin...)
	dst = appendElement(dst, "url", "", r.URL)
	dst = append(r.Fetched.UTC().AppendFormat(append(dst, "<fetched>"...), time.RFC3339), "</fetched>"...)
	dst = appendElement(dst, "directory", "", r.Directory)
	from := ""
	if r.EncodingFrom != "" {
		from = ` from="` + string(appendText(nil, r.EncodingFrom)) + `"`
	}
	dst = appendElement(dst, "encoding", from, r.Encoding)
	if r.Language != "" {
		how := fmt.Sprintf(` share="%.3f" confidence="%.3f"`, r.Share, r.Confidence)
		dst = appendElement(dst, "language", how, r.Language)
	}
	dst = base32.StdEncoding.AppendEncode(append(dst, "<digest>sha1:"...), r.Digest[:])
	dst = append(dst, "</digest>"...)
	if r.Simhash != 0 {
		dst = fmt.Appendf(dst, "<simhash>%016x</simhash>", r.Simhash)
	}
	dst = appendElement(dst, "headline", "", r.Headline)
	dst = appendElement(dst, "content", "", r.Content)
	return append(append(dst, end...), '\n')
}

func appendElement(dst []byte, name, attributes, text string) []byte {
	dst = append(append(append(append(dst, '<'), name...), attributes...), '>')
	dst = appendText(dst, text)
	return append(append(append(dst, "</"...), name...), '>')
}

// appendText appends text as the content of an element or attribute. What begins another line for some program, what a
// reader would change, and what terminals act on, is written as its number.
func appendText(dst []byte, text string) []byte {
	for _, c := range text {
		switch {
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '"':
			dst = append(dst, "&quot;"...)
		case c == '\n', c == '\r', c == '\t', c >= 0x7f && c < 0xa0, c == '\u2028', c == '\u2029':
			dst = append(strconv.AppendInt(append(dst, "&#"...), int64(c), 10), ';')
		case !isChar(c):
			dst = utf8.AppendRune(dst, utf8.RuneError)
		default:
			dst = utf8.AppendRune(dst, c)
		}
	}
	return dst
}

// isChar reports whether XML 1.0 has a character (production 2); tabs and line ends are written otherwise.
func isChar(c rune) bool {
	return c >= 0x20 && c <= 0xd7ff || c >= 0xe000 && c <= 0xfffd || c >= 0x10000 && c <= 0x10ffff
}
