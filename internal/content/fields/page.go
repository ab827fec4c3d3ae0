package fields

import (
	"kumo/internal/base/page"
	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// PageOf is a body as rules read it: of HTML, XHTML and XML; false for others. The page is what the parser made of it,
// contentType what came with it.
func PageOf(pageURL string, body []byte, contentType string, pg *page.Page) (p Page, readable bool) {
	switch {
	case parse.IsHTML(pg.Sniffed):
		return Page{URL: pageURL, Text: string(parse.UTF8(body, pg.Charset))}, true
	case Readable(pg.Sniffed):
		return Page{URL: pageURL, Text: string(parse.XMLText(body, contentType)), XML: true}, true
	}
	return p, false
}

// Readable reports whether rules read bodies of a media type.
func Readable(mediaType string) bool {
	if parse.IsHTML(mediaType) {
		return true
	}
	t, ok := mime.Parse(mediaType)
	return ok && t.IsXML()
}
