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

// The methods in this file compare a state with a crawl's files.

// Each calls f with every pending URL, from the rest of the journal and the frontier, and bad with damage in the
// frontier's files.
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

// PendingDedup returns the URLs that the next merge of seen will decide.
func (s *State) PendingDedup() []string {
	return slices.AppendSeq(slices.Clone(s.UndecidedURLs), maps.Keys(s.Unexplained))
}

// EachDeferred calls f with every URL ever deferred by the crawl in dir, and the offset after it in the file, up to the
// length in the state's marks.
func (s *State) EachDeferred(disk vfs.FS, dir string, f func(skip *page.Skip, end int64) error) error {
	if length, _ := store.FindMark(s.Marks, statefile.DeferredName); length == 0 {
		return nil
	}
	return statefile.ReadDeferred(disk, filepath.Join(dir, statefile.DeferredName), 0, func(skip page.Skip,
		end int64) error {
		return f(&skip, end)
	})
}

// CountScopeSeeds reads the crawl's scope seeds, up to the length in the state's marks, and returns their number.
func (s *State) CountScopeSeeds(disk vfs.FS, dir string) (n int64, err error) {
	length, _ := store.FindMark(s.Marks, statefile.ScopeSeedsName)
	err = statefile.ReadScopeSeeds(disk, filepath.Join(dir, statefile.ScopeSeedsName), length,
		func(statefile.SeedEntry) error {
			n++
			return nil
		})
	return n, err
}
