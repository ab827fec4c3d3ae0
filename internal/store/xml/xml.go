// Package xml is the XML form of a batch crawl's pages: what a page says, for who searches it. A document has one page
// a line:
//
//	<?xml version="1.0" encoding="UTF-8"?>
//	<pages>
//	<page><url>…</url><fetched>2026-11-21T03:04:05Z</fetched><directory>crawler_de</directory><encoding>utf-8</encoding>…
//	</pages>
package xml

import (
	"time"
	"unicode/utf8"
)

// A Record is one page.
type Record struct {
	URL       string
	Fetched   time.Time
	Directory string // of the collection: "crawler_de"
	Encoding  string // that the page was written in, its WHATWG name
	Language  string // ISO 639-1 or 639-3, "" if not known
	Headline  string
	Content   string // the main text, a line a paragraph
}

// What a document has around its records.
const (
	Header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n<pages>\n"
	Footer = "</pages>\n"
)

// Append appends a record as one line. Characters that XML has no way to write become U+FFFD, as does what is not
// UTF-8.
func Append(dst []byte, r *Record) []byte {
	dst = append(dst, "<page>"...)
	for _, f := range [...]struct{ name, text string }{
		{"url", r.URL}, {"fetched", r.Fetched.UTC().Format(time.RFC3339)}, {"directory", r.Directory},
		{"encoding", r.Encoding}, {"language", r.Language}, {"headline", r.Headline}, {"content", r.Content},
	} {
		dst = append(append(append(dst, '<'), f.name...), '>')
		dst = appendText(dst, f.text)
		dst = append(append(append(dst, "</"...), f.name...), '>')
	}
	return append(dst, "</page>\n"...)
}

// appendText appends text as an element's content. White space that a reader would change, or that would begin another
// line, is written as its number.
func appendText(dst []byte, text string) []byte {
	for _, c := range text {
		switch {
		case c == '<':
			dst = append(dst, "&lt;"...)
		case c == '>':
			dst = append(dst, "&gt;"...)
		case c == '&':
			dst = append(dst, "&amp;"...)
		case c == '\n':
			dst = append(dst, "&#10;"...)
		case c == '\r':
			dst = append(dst, "&#13;"...)
		case c == '\t':
			dst = append(dst, "&#9;"...)
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
