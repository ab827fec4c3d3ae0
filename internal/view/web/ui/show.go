package ui

import (
	"fmt"
	"html/template"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hidden reports whether a character is not seen, or changes how others are: control characters, those that turn the
// direction of what follows, those of no width, and what is no character.
func hidden(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp) ||
		r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0000 && r <= 0xE01EF
}

// show makes of a stranger's text HTML in which all of it can be seen. It is kept from turning what stands around it.
func show(s string) template.HTML { return shown(s, false) }

// typed is plain for what a person has typed, who gets back what belongs to words: joiners and non-joiners of letters,
// the forms of signs, and hyphens that are seen at a line's end.
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

// showLines is show for a text of several lines.
func showLines(s string) template.HTML { return shown(s, true) }

func shown(s string, lines bool) template.HTML {
	text := visible(s, lines, `<span class="hidden">`, "</span>", template.HTMLEscapeString)
	return template.HTML("<bdi>" + text + "</bdi>") //nolint:gosec // all of it was escaped
}

// plain is show for places where no markup can be: what is not seen stands there by its number.
func plain(s string) string { return Plain(s, false) }

// Plain is a stranger's text in which all can be seen: what is not stands there by its number. Lines are kept if it may
// have several.
func Plain(s string, lines bool) string {
	return visible(s, lines, "[", "]", func(seen string) string { return seen })
}

// visible puts between two marks the numbers of characters that are not seen, and has the rest written by write.
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

// codeOf names a character: U+202E, or of a byte that belongs to none, 0xFF.
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
