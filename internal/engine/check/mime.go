package check

import (
	"fmt"
	"strings"

	"kumo/internal/content/mime"
	"kumo/internal/content/parse"
)

// MIMEIn is a media type, and optionally the body that it was declared for.
type MIMEIn struct {
	Value string `json:"value" need:"value or body_b64"`
	Body  []byte `json:"body_b64" need:"value or body_b64"`
}

// MIMEOut is a parsed media type.
type MIMEOut struct {
	OK         bool              `json:"ok"`
	Type       string            `json:"type"`
	Parameters map[string]string `json:"parameters"`
	Sniffed    string            `json:"sniffed,omitempty"` // type of the body, from its bytes

	undeclared bool // no type was declared
}

// MIME parses a media type.
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

// IsMediaType reports whether a string is a media type rather than a file name: whether it begins with a registered
// top-level type, or with x-.
func IsMediaType(s string) bool {
	main, _, ok := strings.Cut(strings.ToLower(strings.TrimSpace(s)), "/")
	switch main {
	case "application", "audio", "example", "font", "haptics", "image", "message", "model", "multipart", "text", "video",
		"chemical":
		return ok
	}
	return ok && strings.HasPrefix(main, "x-")
}

// bodyError returns the error for a body that is not text, such as an image or an archive.
func bodyError(essence, why string) error { return fmt.Errorf("the body is %s, %s", essence, why) }

// binaryType returns the type of a body that is not text, by its first bytes, and "" for text. Bytes that match no type
// are text if their charset was detected.
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
