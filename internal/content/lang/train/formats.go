package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// A message is a text, and the English source text if it is a translation.
type message struct{ source, text string }

// mo parses a GNU gettext catalog. Plural forms and contexts are cut off the source; plural forms of the text are
// joined.
func mo(data []byte) ([]message, error) {
	if len(data) < 20 || binary.LittleEndian.Uint32(data) != 0x950412de {
		return nil, fmt.Errorf("not a little-endian message catalog")
	}
	field := func(at uint32) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	n, sources, texts := field(8), field(12), field(16)
	if int(sources+8*n) > len(data) || int(texts+8*n) > len(data) {
		return nil, fmt.Errorf("message catalog is truncated")
	}
	str := func(table, i uint32) string {
		size, at := field(table+8*i), field(table+8*i+4)
		if int(at)+int(size) > len(data) {
			return ""
		}
		return string(data[at : at+size])
	}
	var out []message
	for i := range n {
		source, _, _ := strings.Cut(str(sources, i), "\x00")
		if source == "" {
			continue // the header
		}
		if _, rest, ok := strings.Cut(source, "\x04"); ok {
			source = rest
		}
		for text := range strings.SplitSeq(str(texts, i), "\x00") {
			out = append(out, message{source, text})
		}
	}
	return out, nil
}

// messages parses MediaWiki's translations: a JSON object of strings. @metadata has the authors.
func messages(data []byte) ([]message, error) {
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var out []message
	for _, k := range slices.Sorted(maps.Keys(all)) {
		if text, ok := all[k].(string); ok && !strings.HasPrefix(k, "@") {
			out = append(out, message{text: text})
		}
	}
	return out, nil
}

// pak parses the strings of a Chromium resource file, version 5 in UTF-8.
func pak(data []byte) ([]message, error) {
	if len(data) < 12 || binary.LittleEndian.Uint32(data) != 5 || data[4] != 1 {
		return nil, fmt.Errorf("not a resource file of version 5 in UTF-8")
	}
	n := int(binary.LittleEndian.Uint16(data[8:]))
	if len(data) < 12+6*(n+1) {
		return nil, fmt.Errorf("resource file is truncated")
	}
	at := func(i int) int { return int(binary.LittleEndian.Uint32(data[12+6*i+2:])) }
	var out []message
	for i := range n {
		if lo, hi := at(i), at(i+1); lo <= hi && hi <= len(data) {
			out = append(out, message{text: string(data[lo:hi])})
		}
	}
	return out, nil
}

// inline are the tags that do not end a piece of text, in HTML and in the help format Mallard.
var inline = map[string]bool{"a": true, "b": true, "i": true, "em": true, "span": true, "strong": true, "link": true,
	"gui":    true,
	"guiseq": true, "app": true, "key": true, "keyseq": true, "sub": true, "sup": true, "u": true, "br": true}

// markup extracts the text of an HTML or XML page, block by block.
func markup(data []byte) ([]message, error) {
	var out []message
	var block strings.Builder
	skip := atom.Atom(0)
	flush := func() {
		if s := strings.TrimSpace(block.String()); s != "" {
			out = append(out, message{text: s})
		}
		block.Reset()
	}
	z := html.NewTokenizer(bytes.NewReader(data))
	for {
		switch z.Next() {
		case html.ErrorToken:
			flush()
			return out, nil
		case html.TextToken:
			if skip == 0 {
				block.Write(z.Text())
			}
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			t := z.Token()
			if !inline[t.Data] {
				flush()
			}
			switch t.DataAtom {
			case atom.Script, atom.Style, atom.Code, atom.Pre:
				skip = 0
				if t.Type == html.StartTagToken {
					skip = t.DataAtom
				}
			}
		}
	}
}
