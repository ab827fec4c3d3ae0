package check

import (
	"fmt"
	"strings"

	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// MIMEIn is a media type, and the body that it is said of, if there is one.
type MIMEIn struct {
	Value string `json:"value" need:"value or body_b64"`
	Body  []byte `json:"body_b64" need:"value or body_b64"`
}

// MIMEOut is a media type, taken apart.
type MIMEOut struct {
	OK         bool              `json:"ok"`
	Type       string            `json:"type"`
	Parameters map[string]string `json:"parameters"`
	Sniffed    string            `json:"sniffed,omitempty"` // what the body is, whatever is said of it

	undeclared bool // nothing was said of it
}

// MIME reads a media type.
func MIME(in MIMEIn) (MIMEOut, error) {
	t, ok := mime.Parse(in.Value)
	out := MIMEOut{OK: ok, Type: t.Essence(), Parameters: map[string]string{}, undeclared: in.Value == ""}
	for _, p := range t.Params {
		out.Parameters[p.Name] = p.Value
	}
	if len(in.Body) > 0 {
		out.Sniffed = mime.Sniff(in.Body, in.Value, false).Essence()
	}
	return out, nil
}

// IsMediaType reports whether a text is rather a media type than the name of a file: whether it begins with a top-level
// type that is registered, or with x-.
func IsMediaType(s string) bool {
	main, _, ok := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "/")
	switch main {
	case "application", "audio", "example", "font", "haptics", "image", "message", "model", "multipart", "text", "video",
		"chemical":
		return ok
	}
	return ok && strings.HasPrefix(main, "x-")
}

// bodyError is the error of a body that is no text: an image, an archive.
func bodyError(essence, why string) error { return fmt.Errorf("the body is %s, %s", essence, why) }

// binaryType is the type of a body that is no text, by what it begins with, and "" for a text. Bytes that no other text
// has are those of one in a charset that was found out.
func binaryType(body []byte, c parse.Charset) string {
	const octets = "application/octet-stream"
	if t := mime.Sniff(body, "text/html", false); !textual(t) {
		return t.Essence()
	}
	if t := mime.Sniff(body, "", false); t.Essence() == octets && c.How == "default" {
		return octets
	}
	return ""
}

func textual(t mime.Type) bool { return t.Main == "text" || t.IsXML() }
