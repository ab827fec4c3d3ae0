package text

import (
	"strings"
	"unicode/utf8"
)

// Rows returns the rows of a terminal that a text takes: lines longer than width wrap.
func Rows(text string, width int) (n int) {
	for line := range strings.Lines(text) {
		n++
		if long := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); width > 0 && long > width {
			n += (long - 1) / width
		}
	}
	return n
}
