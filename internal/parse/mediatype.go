package parse

import (
	"net/http"
	"strings"
)

// MediaType returns the media type that a Content-Type field names, in lower case and without parameters: "text/html". It is
// empty if the field names none.
func MediaType(contentType string) string {
	if i := strings.IndexAny(contentType, ";,"); i >= 0 {
		contentType = contentType[:i]
	}
	contentType = strings.Trim(contentType, " \t\r\n")
	main, sub, _ := strings.Cut(contentType, "/")
	if main == "" || sub == "" || strings.ContainsAny(contentType, " \t\r\n") {
		return ""
	}
	return strings.ToLower(contentType)
}

const xhtml = "application/xhtml+xml"

// Readable reports whether a body of the media type is worth decoding and parsing: HTML and XHTML, and a body of which
// nothing is said, since it may turn out to be HTML.
func Readable(mediaType string) bool {
	return mediaType == "text/html" || mediaType == xhtml || mediaType == ""
}

// isHTML reports whether a body of the declared type is HTML; where none is declared, by the body.
func isHTML(mediaType string, body []byte) bool {
	if mediaType == "" {
		return len(body) > 0 && MediaType(http.DetectContentType(body)) == "text/html"
	}
	return Readable(mediaType)
}
