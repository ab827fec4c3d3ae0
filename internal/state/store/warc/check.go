package warc

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// ErrMissing reports a missing WARC file.
var ErrMissing = errors.New("WARC file is missing")

// Check compares the WARC files of the crawl in dir with marks, which cover all files that the crawl has written. Each
// file must exist, unless moved allows that files were moved elsewhere. Each finished file must have the marked length
// and an index. Other files must not exist. So Check detects files that were copied while a crawl wrote them.
func Check(disk vfs.FS, dir string, marks []store.Mark, moved bool) error {
	names, err := disk.List(filepath.Join(dir, "warc"))
	if err != nil {
		return err
	}
	c := checker{disk: disk, dir: filepath.Join(dir, "warc"), marks: marks, moved: moved,
		here: make(map[string]bool, len(names))}
	for _, name := range names {
		c.here[name] = true
	}
	for _, name := range names {
		if isFinal(name) {
			if err := c.final(name); err != nil {
				return err
			}
		}
	}
	return c.missing()
}

type checker struct {
	disk  vfs.FS
	dir   string
	marks []store.Mark
	moved bool
	here  map[string]bool
}

func isFinal(name string) bool {
	for _, e := range extensions {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}

func (c *checker) final(name string) error {
	size, err := c.disk.Size(filepath.Join(c.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was moved just now
	}
	length, known := store.FindMark(c.marks, "warc/"+name+open)
	stem, _, _ := strings.Cut(name, ".warc")
	switch {
	case err != nil:
		return err
	case !known:
		return vfs.Invalidf("warc/%s is not recorded in the crawl's state: it is newer than the state, or "+
			"belongs to another crawl", name)
	case size != length:
		return vfs.Invalidf("warc/%s is %d bytes long, but %d bytes were written to it", name, size, length)
	case !c.here[stem+".cdxj"]:
		return vfs.Invalidf("warc/%s has no index", name)
	}
	return nil
}

func (c *checker) missing() error {
	first, n := "", 0
	for _, m := range c.marks {
		name, ok := strings.CutPrefix(strings.TrimSuffix(m.Name, open), "warc/")
		if ok && isFinal(name) && m.Length > 0 && !c.here[name] && !c.here[name+open] && !c.moved {
			if n++; first == "" || name < first {
				first = name
			}
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("warc/%s: %w", first, ErrMissing)
	}
	return fmt.Errorf("warc/%s, and %d more: %w", first, n-1, ErrMissing)
}
