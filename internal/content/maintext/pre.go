package maintext

import (
	"strings"

	"golang.org/x/net/html"
)

// Marks stand for white space inside pre on its way through the library, which collapses it. They are noncharacters,
// which Unicode sets aside for such use: private characters are the icons of many pages.
const (
	lineMark  = "\uFDD0"
	spaceMark = "\uFDD1"
	tabMark   = "\uFDD2"
)

// unmark makes the marked white space within a line real.
var unmark = strings.NewReplacer(spaceMark, " ", tabMark, "\t")

// restoreLines is a text with its own white space made plain and its marked line breaks made real.
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

// writeRestored writes what unlined returns.
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

// restoreSpace is a text with its marked white space made real. Few lines have any.
func restoreSpace(s string) string {
	if !strings.Contains(s, spaceMark[:2]) { // with which all marks begin
		return s
	}
	return unmark.Replace(s)
}

// markSpace marks the white space of a pre, but for spaces between two words: the library reads words.
func markSpace(pre *html.Node) {
	for _, n := range textNodes(pre) {
		n.Data = marked(n.Data)
	}
}

func marked(s string) string {
	var b strings.Builder
	spaced := true // no word comes right before
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
