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
	Encoding     string    // the page's charset (WHATWG name)
	EncodingFrom string    // source of the charset: "bom", "header", "meta", "detected", "default"; "" if unknown
	Language     string    // main language of the text: ISO 639-1 or 639-3, or "other"; "" if unknown
	Share        float32   // share of the text that is in Language, 0 to 1, written with three decimals
	Confidence   float32   // confidence in Language, 0 to 1, written with three decimals
	Digest       page.Digest
	Simhash      uint64 // of the text; 0 without text
	Headline     string
	Content      string // the main text, one line per paragraph
}

// Schema is the XML schema of documents. Documents refer to it as SchemaName in their parent folder. A change that
// older readers would misinterpret needs a new version.
//
//go:embed kumo-batch-1.xsd
var Schema []byte

// SchemaName is the file name of the Schema.
const SchemaName = "kumo-batch-1.xsd"

// The text around the records of a document.
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

// Append appends a record as one line. Invalid UTF-8 and characters that XML does not allow become U+FFFD; see [Clean].
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

// appendText appends text as the content of an element or attribute. Characters are written as numeric references if
// programs take them for line ends, if XML readers would change them, or if terminals interpret them.
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

// isChar reports whether XML 1.0 allows a character (production 2), except tabs and line ends, which are handled
// elsewhere.
func isChar(c rune) bool {
	return c >= 0x20 && c <= 0xd7ff || c >= 0xe000 && c <= 0xfffd || c >= 0x10000 && c <= 0x10ffff
}
