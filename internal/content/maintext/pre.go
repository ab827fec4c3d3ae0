package maintext

import "strings"

// Marks replace white space inside pre in the copy for Markdown, because it is collapsed elsewhere. They are
// Unicode noncharacters, which are reserved for such use. Private-use characters would not do: many pages use them for
// icons.
const (
	lineMark  = "\uFDD0"
	spaceMark = "\uFDD1"
	tabMark   = "\uFDD2"
)

// unmark restores the marked white space within a line.
var unmark = strings.NewReplacer(spaceMark, " ", tabMark, "\t")

// restoreLines replaces the text's own line breaks and tabs by spaces, and marked line breaks by real ones.
func restoreLines(s string) string {
	for i := range len(s) {
		if isLineSpace(s[i]) || s[i] == lineMark[0] {
			var b strings.Builder
			b.Grow(len(s))
			writeRestored(&b, s)
			return b.String()
		}
	}
	return s
}

func isLineSpace(c byte) bool { return c == '\n' || c == '\r' || c == '\t' || c == '\f' }

// writeRestored writes the result of restoreLines.
func writeRestored(b *strings.Builder, s string) {
	begin := 0
	for i := 0; i < len(s); i++ {
		switch {
		case isLineSpace(s[i]):
			b.WriteString(s[begin:i])
			b.WriteByte(' ')
			begin = i + 1
		case s[i] == lineMark[0] && strings.HasPrefix(s[i:], lineMark):
			b.WriteString(s[begin:i])
			b.WriteByte('\n')
			i += len(lineMark) - 1
			begin = i + 1
		}
	}
	b.WriteString(s[begin:])
}

// restoreSpace restores the marked white space of a text. Few lines have any.
func restoreSpace(s string) string {
	if !strings.Contains(s, spaceMark[:2]) { // the common prefix of all marks
		return s
	}
	return unmark.Replace(s)
}

// marked marks the white space of a text in pre, except spaces between two words.
func marked(s string) string {
	var b strings.Builder
	spaced := true // no word directly before
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteString(lineMark)
		case r == '\t':
			b.WriteString(tabMark)
		case (r == ' ' || r == '\u00A0') && spaced:
			b.WriteString(spaceMark)
		default:
			b.WriteRune(r)
		}
		spaced = r == '\n' || r == '\t' || r == ' ' || r == '\u00A0'
	}
	return b.String()
}
