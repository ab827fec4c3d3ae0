// Package leftout says which patterns of URLs a crawl has left out as traps, from its files.
package leftout

import (
	"cmp"
	"slices"
	"strings"

	"kumo/internal/store"
	"kumo/internal/store/jsonl"
	"kumo/internal/traps"
	"kumo/internal/vfs"
)

// A Pattern is what was left out of one.
type Pattern struct {
	Pattern  string `json:"pattern"`
	URLs     int64  `json:"urls"`     // that skipped.jsonl names
	Evidence string `json:"evidence"` // of the last: "200 pages, 3 new"
	Example  string `json:"example"`  // the first
	Released bool   `json:"released"` // they were let in since, or will be by the next run
}

// List is all patterns of which a file of skips has URLs by some rules, those with most first. released are those that
// the crawl's settings let in; a file that is not there has none.
func List(disk vfs.FS, file string, rules, released []string) ([]Pattern, error) {
	found := map[string]*Pattern{}
	_, err := store.EachLineOf(disk, file, func(line []byte, _ int64) error {
		s, err := jsonl.ParseSkip(line)
		name := traps.Pattern(s.Why)
		if err != nil || !slices.Contains(rules, s.Rule) || name == "" {
			return nil //nolint:nilerr // verify says what is wrong with a line
		}
		p := found[name]
		if p == nil {
			p = &Pattern{Pattern: name, Example: s.URL, Released: slices.Contains(released, name)}
			found[name] = p
		}
		p.URLs++
		_, p.Evidence, _ = strings.Cut(s.Why, ": ")
		return nil
	})
	var all []Pattern
	for _, p := range found {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), strings.Compare(a.Pattern, b.Pattern))
	})
	return all, err
}
