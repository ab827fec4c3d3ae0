package inspect

import (
	"fmt"
	"strings"
	"unicode"

	"kumo/internal/base/field"
)

// Visible escapes invisible characters, terminal controls and characters that change the text direction: \u{1b}. It
// keeps line ends, and the joiners that some scripts need.
func Visible(s string) string { return escape(s, "\n\u200c\u200d") }

// VisibleLine is like Visible, and also escapes line ends.
func VisibleLine(s string) string { return escape(s, "\u200c\u200d") }

func escape(s, but string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	hidden := func(r rune) bool {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || field.IsBidiControl(r) || unicode.Is(unicode.Cf, r) {
			return !strings.ContainsRune(but, r)
		}
		return false
	}
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&b, "\\u{%x}", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
