package verify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"kumo/internal/base/extsort"
)

// A sorter sorts claims: what memory does not hold goes to a folder that close removes. A claim's key is its URL, its
// value the kind and then the body: a URL's claims come in the order of their kinds.
type sorter struct {
	*extsort.Sorter
	dir   string // not there as long as nothing was written
	value []byte
}

func newSorter(parent string, memory int) *sorter {
	if parent == "" {
		parent = os.TempDir()
	}
	dir := filepath.Join(parent, fmt.Sprintf("kumo-verify-%016x", rand.Uint64()))
	return &sorter{Sorter: extsort.New(extsort.Config{Dir: dir, Memory: memory}), dir: dir}
}

func (s *sorter) add(url string, kind kind, body []byte) error {
	s.value = append(append(s.value[:0], byte(kind)), body...)
	return s.Add(0, []byte(url), s.value)
}

// sorted gives all claims in order. Nothing may be added any more.
func (s *sorter) sorted() (*claims, error) {
	m, err := s.Sorted(0)
	return &claims{m}, err
}

func (s *sorter) close() error { return errors.Join(s.Close(), os.RemoveAll(s.dir)) }

// Claims are in order, each valid until the next; io.EOF at the end.
type claims struct{ *extsort.Merge }

func (c *claims) next() (claim, error) {
	url, value, err := c.Next()
	if err != nil {
		return claim{}, err
	}
	return claim{url, kind(value[0]), value[1:]}, nil
}
