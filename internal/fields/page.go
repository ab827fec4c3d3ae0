package fields

import (
	"kumo/internal/mime"
	"kumo/internal/parse"
)

// PageOf is a body as rules read it: of HTML, XHTML and XML; false for others.
func PageOf(pageURL string, body []byte, charset, mediaType string) (p Page, readable bool) {
	if !Readable(mediaType) {
		return p, false
	}
	return Page{URL: pageURL, Text: string(parse.UTF8(body, charset)), XML: !parse.IsHTML(mediaType)}, true
}

// Readable reports whether rules read bodies of a media type.
func Readable(mediaType string) bool {
	if parse.IsHTML(mediaType) {
		return true
	}
	t, ok := mime.Parse(mediaType)
	return ok && t.IsXML()
}
