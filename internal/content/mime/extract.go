package mime

import "strings"

// Extract returns the media type that a response's Content-Type fields have together, as the Fetch standard's "extract
// a MIME type" finds it: the last one that can be read counts, and takes the charset of one before it that is otherwise
// equal.
func Extract(fields []string) (t Type, ok bool) {
	var charset, essence string
	for _, field := range fields {
		for value := range values(field) {
			next, valid := Parse(value)
			if !valid || next.Essence() == "*/*" {
				continue
			}
			t, ok = next, true
			label, has := t.Param("charset")
			switch {
			case t.Essence() != essence:
				charset, essence = label, t.Essence()
			case has:
				charset = label
			case charset != "":
				t.Params = append(t.Params, Param{"charset", charset})
			}
		}
	}
	return t, ok
}

// values gives the parts of a field that lie between commas, but not those commas that are quoted.
func values(field string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		start, inQuotes := 0, false
		for i := 0; i < len(field); i++ {
			switch {
			case field[i] == '"':
				inQuotes = !inQuotes
			case field[i] == '\\' && inQuotes:
				i++
			case field[i] == ',' && !inQuotes:
				if !yield(strings.Trim(field[start:i], whiteSpace)) {
					return
				}
				start = i + 1
			}
		}
		yield(strings.Trim(field[start:], whiteSpace))
	}
}
