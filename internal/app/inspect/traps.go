package inspect

import (
	"cmp"
	"slices"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/content/traps"
	"kumo/internal/state/store"
	"kumo/internal/state/store/jsonl"
)

// A TrapPattern is a pattern of URLs that a crawl excluded as a trap.
type TrapPattern struct {
	Pattern  string `json:"pattern"`
	URLs     int64  `json:"urls"`     // in skipped.jsonl
	Evidence string `json:"evidence"` // of the last URL: "200 pages, 3 new"
	Example  string `json:"example"`  // the first URL
	Released bool   `json:"released"` // admitted since, or by the next run
}

// TrapPatterns returns the patterns of URLs that skipped.jsonl lists with one of the rules, most URLs first. released
// are the patterns that the crawl's settings admit. If the file does not exist, there are none.
func TrapPatterns(disk vfs.FS, file string, rules, released []string) ([]TrapPattern, error) {
	found := map[string]*TrapPattern{}
	_, err := store.EachLineOf(disk, file, func(line []byte, _ int64) error {
		s, err := jsonl.ParseSkip(line)
		name := traps.Pattern(s.Why)
		if err != nil || !slices.Contains(rules, s.Rule) || name == "" {
			return nil //nolint:nilerr // kumo verify reports the line
		}
		p := found[name]
		if p == nil {
			p = &TrapPattern{Pattern: name, Example: s.URL, Released: slices.Contains(released, name)}
			found[name] = p
		}
		p.URLs++
		_, p.Evidence, _ = strings.Cut(s.Why, ": ")
		return nil
	})
	var all []TrapPattern
	for _, p := range found {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b TrapPattern) int {
		return cmp.Or(cmp.Compare(b.URLs, a.URLs), strings.Compare(a.Pattern, b.Pattern))
	})
	return all, err
}
