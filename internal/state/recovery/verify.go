package recovery

import (
	"maps"
	"path/filepath"
	"slices"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/state/frontier"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
)

// What a state holds is told here to those who compare it with a crawl's files.

// Each calls f with every URL that waits, as the journal's rest and the frontier have it. What of the frontier's files
// is not as it was written is told to bad.
func (s *State) Each(f func(url string, again bool) error, bad func(error)) error {
	for url, it := range s.pending {
		if err := f(url, it.Recrawl); err != nil {
			return err
		}
	}
	if err := s.EachAbandoned(func(it item.Item) error { return f(it.URL, it.Recrawl) }); err != nil {
		return err
	}
	return s.Views.Frontier.Inspector().Walk(frontier.Walker{Damaged: bad, Item: func(_ string,
		it *item.Item) error {
		return f(it.URL, it.Recrawl)
	}})
}

// PendingDedup are the URLs of which the next merge of seen says whether they are news.
func (s *State) PendingDedup() []string {
	return slices.AppendSeq(slices.Clone(s.UndecidedURLs), maps.Keys(s.Unexplained))
}

// EachDeferred calls f with every URL that was ever set aside by the crawl in dir, and the offset behind it in the file:
// what the state's marks say is there.
func (s *State) EachDeferred(disk vfs.FS, dir string, f func(skip *page.Skip, end int64) error) error {
	if length, _ := store.FindMark(s.Marks, statefile.DeferredName); length == 0 {
		return nil
	}
	return statefile.ReadDeferred(disk, filepath.Join(dir, statefile.DeferredName), 0, func(skip page.Skip,
		end int64) error {
		return f(&skip, end)
	})
}

// CountScopeSeeds reads the crawl's seeds, and what they redirect to: what the state's marks say is there. It returns
// how many there are.
func (s *State) CountScopeSeeds(disk vfs.FS, dir string) (n int64, err error) {
	length, _ := store.FindMark(s.Marks, statefile.ScopeSeedsName)
	err = statefile.ReadScopeSeeds(disk, filepath.Join(dir, statefile.ScopeSeedsName), length,
		func(statefile.SeedEntry) error {
			n++
			return nil
		})
	return n, err
}
