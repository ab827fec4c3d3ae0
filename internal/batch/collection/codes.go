package collection

import "strings"

// Codes lists the codes of collections, for people.
func Codes(all []*Collection) string {
	codes := make([]string, len(all))
	for i, c := range all {
		codes[i] = c.Code
	}
	return strings.Join(codes, ", ")
}
