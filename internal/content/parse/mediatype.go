package parse

import (
	"strings"

	"kumo/internal/content/mime"
)

// MediaType returns the media type that a Content-Type field names, in lower case and without parameters: "text/html".
// It is empty if the field names none.
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

// Readable reports whether a body of the media type is worth decoding and parsing: HTML and XHTML, style sheets, plain
// text, scripts, lists for machines, and a body of which nothing is said, since it may turn out to be HTML.
func Readable(essence string) bool {
	switch essence {
	case "", "text/html", xhtml, "text/css", "text/plain":
		return true
	}
	return IsList(essence) || mediaType(essence).IsJavaScript()
}

// IsHTML reports whether Parse reads a body of the media type as HTML or XHTML.
func IsHTML(essence string) bool { return essence == "text/html" || essence == xhtml }

// sniffed is the media type of a body, of which is declared what MediaType makes of the Content-Type field.
func sniffed(declared, contentType string, body []byte) string {
	if len(body) == 0 {
		return declared
	}
	if _, ok := mime.Parse(contentType); !ok {
		contentType = declared
	}
	return mime.Sniff(body, contentType, false).Essence()
}

func mediaType(essence string) mime.Type {
	main, sub, _ := strings.Cut(essence, "/")
	return mime.Type{Main: main, Sub: sub}
}
