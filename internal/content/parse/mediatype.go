package parse

import (
	"strings"

	"kumo/internal/content/mime"
)

// MediaType returns the media type of a Content-Type field, in lower case and without parameters: "text/html". It is
// empty if the field has none.
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

// Readable reports whether bodies of the media type are decoded and parsed: HTML and XHTML, style sheets, plain text,
// scripts, lists such as sitemaps, and bodies without a type, which may be HTML.
func Readable(essence string) bool {
	switch essence {
	case "", "text/html", xhtml, "text/css", "text/plain":
		return true
	}
	return IsList(essence) || mediaType(essence).IsJavaScript()
}

// IsHTML reports whether Parse reads a body of the media type as HTML or XHTML.
func IsHTML(essence string) bool { return essence == "text/html" || essence == xhtml }

// sniffed returns the media type of a body. declared is the MediaType of contentType.
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
