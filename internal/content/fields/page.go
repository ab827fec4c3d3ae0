package fields

import (
	"kumo/internal/base/page"
	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// PageOf returns a body as a Page for rules; false if it is not HTML, XHTML or XML. pg is the parser's result,
// contentType the Content-Type field.
func PageOf(pageURL string, body []byte, contentType string, pg *page.Page) (p Page, readable bool) {
	switch {
	case parse.IsHTML(pg.Sniffed):
		return Page{URL: pageURL, Text: string(parse.UTF8(body, pg.Charset))}, true
	case Readable(pg.Sniffed):
		return Page{URL: pageURL, Text: string(parse.XMLText(body, contentType)), XML: true}, true
	}
	return p, false
}

// Readable reports whether rules support bodies of a media type.
func Readable(mediaType string) bool {
	if parse.IsHTML(mediaType) {
		return true
	}
	t, ok := mime.Parse(mediaType)
	return ok && t.IsXML()
}
