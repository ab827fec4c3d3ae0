package names

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"strings"

	"kumo/internal/base/extsort"
)

// A Table tells names of files apart: those that are the same to some file system, or are another's folder, get a hash
// of their URL. It costs memory for these alone.
type Table struct {
	sorter *extsort.Sorter
	seed   maphash.Seed
	apart  map[uint64]struct{} // URLs
}

// NewTable returns a table that sorts in a folder, which it makes.
func NewTable(dir string) *Table {
	return &Table{extsort.New(extsort.Config{Dir: dir, Memory: 32 << 20}), maphash.MakeSeed(), map[uint64]struct{}{}}
}

// Close removes what was sorted.
func (t *Table) Close() error { return t.sorter.Close() }

// Add notes that a URL wants a name.
func (t *Table) Add(name, url string) error {
	key := []byte(strings.ReplaceAll(Folded(name), "/", "\x01")) // a folder's files are to be next to its name
	return t.sorter.Add(0, append(append(key, 0), url...), []byte(name))
}

// Give calls add with all names, told apart. Of those that want the same, the first in the order of URLs has it.
func (t *Table) Give(ctx context.Context, add func(name string) error) (err error) {
	sorted, err := t.sorter.Sorted(0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sorted.Close()) }()
	var first, next wish
	for {
		key, name, err := sorted.Next()
		if errors.Is(err, io.EOF) {
			return t.give(&first, false, add)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		folded, url, _ := bytes.Cut(key, []byte{0})
		next = wish{string(folded), string(name), string(url)}
		if next.folded == first.folded {
			if err := t.give(&next, true, add); err != nil {
				return err
			}
			continue
		}
		if err := t.give(&first, strings.HasPrefix(next.folded, first.folded+"\x01"), add); err != nil {
			return err
		}
		first = next
	}
}

// A wish is for a name.
type wish struct{ folded, name, url string }

func (t *Table) give(w *wish, apart bool, add func(string) error) error {
	if w.url == "" {
		return nil
	}
	if apart {
		t.apart[maphash.String(t.seed, w.url)] = struct{}{}
	}
	return add(t.Name(w.name, w.url))
}

// Name is the name that a URL has got which wanted one.
func (t *Table) Name(name, url string) string {
	if _, is := t.apart[maphash.String(t.seed, url)]; is {
		return Apart(name, url)
	}
	return name
}
