package desired

import (
	"iter"
	"strings"
)

// seedListBytes is how large a list of seeds is, about.
const seedListBytes = 128 << 10

// SeedLists cuts seeds into the lists in which nodes come to know them: a line each, as many lines as it takes to have
// 128 KiB. A list that is cut again is one list. Seeds are read as lists are asked for, as there may be more of them
// than fit into memory.
func SeedLists(seeds iter.Seq[string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		var list strings.Builder
		for s := range seeds {
			if list.Len() > 0 {
				list.WriteByte('\n')
			}
			list.WriteString(s)
			if list.Len() < seedListBytes {
				continue
			}
			if !yield(list.String()) {
				return
			}
			list.Reset()
		}
		if list.Len() > 0 {
			yield(list.String())
		}
	}
}
