package names

import (
	"context"
	"hash/maphash"
	"strings"

	"kumo/internal/base/extsort"
)

// A Table makes file names unique. Names that are equal on some file system, or that are also the folder of another
// name, get a hash of their URL. Only these take memory.
type Table struct {
	sorter    *extsort.Sorter
	seed      maphash.Seed
	ambiguous map[uint64]struct{} // hashes of URLs
}

// NewTable returns a table whose temporary files are in dir, which it creates.
func NewTable(dir string) *Table {
	return &Table{extsort.New(extsort.Config{Dir: dir, Memory: 32 << 20}), maphash.MakeSeed(), map[uint64]struct{}{}}
}

// Close removes the temporary files.
func (t *Table) Close() error { return t.sorter.Close() }

// Add adds a URL's request for a name.
func (t *Table) Add(name, url string) error {
	return t.sorter.Add(0, RequestKey(name, url), []byte(name))
}

// Assign calls add with all names, made unique. Of several requests for the same name, the first in URL order gets it.
func (t *Table) Assign(ctx context.Context, add func(name string) error) error {
	return EachRequest(ctx, t.sorter, func(url, name string, apart bool) error {
		if apart {
			t.ambiguous[maphash.String(t.seed, url)] = struct{}{}
		}
		return add(t.Name(name, url))
	})
}

// RequestKey returns the sorter key of a request for a name. Requests for files of a folder sort next to the folder's
// name.
func RequestKey(name, who string) []byte {
	return []byte(strings.ReplaceAll(FoldCase(name), "/", "\x01") + "\x00" + who)
}

// EachRequest calls give with the requests of a sorter, in the order of their keys. apart is true if some file system
// treats the name as equal to an earlier one, or if it is the name of a folder.
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

// Name returns the name assigned to a URL that requested one.
func (t *Table) Name(name, url string) string {
	if _, is := t.ambiguous[maphash.String(t.seed, url)]; is {
		return WithHash(name, url)
	}
	return name
}
