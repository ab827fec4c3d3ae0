package collection

import "strings"

// Codes returns the codes of collections as a list for display.
func Codes(all []*Collection) string {
	codes := make([]string, len(all))
	for i, c := range all {
		codes[i] = c.Code
	}
	return strings.Join(codes, ", ")
}
