package names

import (
	"context"
	"hash/maphash"
	"strings"

	"kumo/internal/base/extsort"
)

// A Table tells names of files apart: those that are the same to some file system, or are another's folder, get a hash
// of their URL. It costs memory for these alone.
type Table struct {
	sorter    *extsort.Sorter
	seed      maphash.Seed
	ambiguous map[uint64]struct{} // URLs
}

// NewTable returns a table that sorts in a folder, which it makes.
func NewTable(dir string) *Table {
	return &Table{extsort.New(extsort.Config{Dir: dir, Memory: 32 << 20}), maphash.MakeSeed(), map[uint64]struct{}{}}
}

// Close removes what was sorted.
func (t *Table) Close() error { return t.sorter.Close() }

// Add notes that a URL wants a name.
func (t *Table) Add(name, url string) error {
	return t.sorter.Add(0, RequestKey(name, url), []byte(name))
}

// Assign calls add with all names, told apart. Of those that want the same, the first in the order of URLs has it.
func (t *Table) Assign(ctx context.Context, add func(name string) error) error {
	return EachRequest(ctx, t.sorter, func(url, name string, apart bool) error {
		if apart {
			t.ambiguous[maphash.String(t.seed, url)] = struct{}{}
		}
		return add(t.Name(name, url))
	})
}

// RequestKey is the key in a sorter of a wish for a name, which is who's. A folder's files are next to its name.
func RequestKey(name, who string) []byte {
	return []byte(strings.ReplaceAll(FoldCase(name), "/", "\x01") + "\x00" + who)
}

// EachRequest calls give with the requested names of a sorter, in the order of their keys. apart is true if a file system
// may take the name for an earlier one, or if it is the name of a folder.
func EachRequest(ctx context.Context, wishes *extsort.Sorter, give func(who, value string, apart bool) error) error {
	type wish struct{ folded, who, value string }
	var first wish
	err := wishes.Each(ctx, func(key, value []byte) error {
		folded, who, _ := strings.Cut(string(key), "\x00")
		next := wish{folded, who, string(value)}
		if next.folded == first.folded {
			return give(next.who, next.value, true)
		}
		before := first
		first = next
		if before.who == "" {
			return nil
		}
		return give(before.who, before.value, strings.HasPrefix(next.folded, before.folded+"\x01"))
	})
	if err != nil || first.who == "" {
		return err
	}
	return give(first.who, first.value, false)
}

// Name is the name that a URL has got which wanted one.
func (t *Table) Name(name, url string) string {
	if _, is := t.ambiguous[maphash.String(t.seed, url)]; is {
		return WithHash(name, url)
	}
	return name
}
