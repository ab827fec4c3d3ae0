package desired

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSeedLists(t *testing.T) {
	t.Parallel()
	var seeds []string
	for i := range 10_000 {
		seeds = append(seeds, fmt.Sprintf("http://h%d.test/%s", i, strings.Repeat("x", i%100)))
	}
	longest := len(slices.MaxFunc(seeds, func(a, b string) int { return len(a) - len(b) }))
	for _, n := range []int{0, 1, 2, 5000, 10_000} {
		var all []string
		for list := range SeedLists(slices.Values(seeds[:n])) {
			if len(list) > seedListBytes+longest {
				t.Errorf("of %d seeds a list has %d bytes", n, len(list))
			}
			again := slices.Collect(SeedLists(strings.SplitSeq(list, "\n")))
			if !slices.Equal(again, []string{list}) {
				t.Errorf("a list that is cut again is %d lists", len(again))
			}
			all = append(all, strings.Split(list, "\n")...)
		}
		if !slices.Equal(all, seeds[:n]) {
			t.Errorf("%d of %d seeds are in the lists", len(all), n)
		}
	}
}

// Not all seeds are in memory at once, and a caller that stops reading lists stops the reading of seeds.
func TestSeedListsAreReadAsTheyAreWanted(t *testing.T) {
	t.Parallel()
	read := 0
	for list := range SeedLists(func(yield func(string) bool) {
		for yield(strings.Repeat("x", 1<<10)) {
			read++
		}
	}) {
		if len(list) < seedListBytes || read > 2*seedListBytes>>10 {
			t.Errorf("%d seeds were read for a list of %d bytes", read, len(list))
		}
		break
	}
}
