package ui

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a character is invisible or changes the display of others: control characters, direction
// marks, zero-width characters and invalid bytes.
func hidden(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) ||
		r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0000 && r <= 0xE01EF
}

// show returns a stranger's text as HTML in which all characters are visible. The text direction is isolated.
func show(s string) template.HTML { return shown(s, false) }

// typed is like plain for a user's own input. It keeps characters that belong to words: joiners, variation selectors
// and soft hyphens.
func typed(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune("\u00ad\u200c\u200d\ufe0e\ufe0f", r) {
			b.WriteRune(r)
		} else {
			b.WriteString(plain(string(r)))
		}
	}
	return b.String()
}

// showName is like show for a name in a narrow column, such as a media type: lines may break at its separators only.
func showName(s string) template.HTML {
	return template.HTML(separators.Replace(string(show(s)))) //nolint:gosec // all of it was escaped
}

var separators = strings.NewReplacer("</", "</", "/", "/<wbr>", ".", ".<wbr>", "-", "-<wbr>")

// showLines is like show for a text of several lines.
func showLines(s string) template.HTML { return shown(s, true) }

func shown(s string, lines bool) template.HTML {
	text := visible(s, lines, `<span class="hidden">`, "</span>", template.HTMLEscapeString)
	return template.HTML("<bdi>" + text + "</bdi>") //nolint:gosec // all of it was escaped
}

// plain is like show for places without markup: invisible characters are replaced by their code.
func plain(s string) string { return Plain(s, false) }

// Plain returns a stranger's text in which invisible characters are replaced by their code; lines: keep line ends.
func Plain(s string, lines bool) string {
	return visible(s, lines, "[", "]", func(seen string) string { return seen })
}

// visible replaces invisible characters by their code between two marks, and passes other text to write.
func visible(s string, lines bool, before, behind string, write func(string) string) string {
	if strings.IndexFunc(s, hidden) < 0 {
		return write(s)
	}
	var b strings.Builder
	from := 0
	for i, r := range s {
		if !hidden(r) || lines && (r == '\n' || r == '\t') {
			continue
		}
		b.WriteString(write(s[from:i]) + before + codeOf(s[i:], r) + behind)
		from = i + width(s[i:], r)
	}
	b.WriteString(write(s[from:]))
	return b.String()
}

// codeOf returns the code of a character: U+202E; 0xFF for an invalid byte.
func codeOf(s string, r rune) string {
	if r == utf8.RuneError && width(s, r) == 1 {
		return fmt.Sprintf("0x%02X", s[0])
	}
	return fmt.Sprintf("U+%04X", r)
}

func width(s string, r rune) int {
	if r != utf8.RuneError {
		return utf8.RuneLen(r)
	}
	_, n := utf8.DecodeRuneInString(s)
	return n
}

// cut shortens a text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
