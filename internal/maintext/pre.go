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

var (
	// unline makes text's own white space plain and its marked line breaks real.
	unline = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\f", " ", lineMark, "\n")
	// unmark makes the marked white space within a line real.
	unmark = strings.NewReplacer(spaceMark, " ", tabMark, "\t")
)

// unmarked is a text with its marked white space made real. Few lines have any.
func unmarked(s string) string {
	if !strings.Contains(s, spaceMark[:2]) { // with which all marks begin
		return s
	}
	return unmark.Replace(s)
}

// markSpace marks the white space of a pre, but for spaces between two words: the library reads words.
func markSpace(pre *html.Node) {
	for n := range pre.Descendants() {
		if n.Type == html.TextNode {
			n.Data = marked(n.Data)
		}
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
