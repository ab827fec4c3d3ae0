// Package jsonld parses the JSON-LD of pages, which is often not quite JSON.
package jsonld

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"
)

// Read parses JSON, and repairs JSON with line feeds in strings, extra commas, comments, or HTML escapes. The text
// may contain several values; those before an error are returned with it.
func Read(text string) (all []any, err error) {
	if all, err = decode([]byte(text)); err == nil {
		return all, nil
	}
	text = strings.Trim(text, "\uFEFF \t\r\n")
	if !strings.Contains(text, `"`) {
		text = html.UnescapeString(text)
	}
	for _, around := range [][2]string{{"//<![CDATA[", "//]]>"}, {"<![CDATA[", "]]>"}, {"<!--", "-->"}} {
		if inner, is := strings.CutPrefix(text, around[0]); is {
			text = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(inner), around[1]))
		}
	}
	return decode(bytes.TrimRight(repair(text), "; \t\r\n"))
}

func decode(text []byte) (all []any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var v any
		if err = d.Decode(&v); errors.Is(err, io.EOF) && len(all) > 0 {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, v)
	}
}

// repair removes comments, control characters in strings, escapes that JSON does not have, and trailing commas.
func repair(text string) []byte {
	out := make([]byte, 0, len(text))
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\' && i+1 < len(text):
			if i++; strings.IndexByte(`"\/bfnrtu`, text[i]) >= 0 {
				out = append(out, c)
			}
		case c == '"':
			quoted = !quoted
		case quoted && c < ' ':
			out = append(out, ' ')
			continue
		case !quoted && strings.HasPrefix(text[i:], "//"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				return out
			}
			i += n
		case !quoted && strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return out
			}
			i += n + 3
			continue
		case !quoted && (c == '}' || c == ']'):
			out = bytes.TrimRight(out, ", \t\r\n")
		}
		out = append(out, text[i])
	}
	return out
}
