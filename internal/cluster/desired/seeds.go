package desired

import (
	"iter"
	"strings"
)

// seedListBytes is the approximate size of a list of seeds.
const seedListBytes = 128 << 10

// SeedLists splits seeds into the lists that nodes exchange: a line for each seed, about 128 KiB. Splitting a list
// again returns the same list. Seeds are read as lists are requested, since they may not fit into memory.
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
