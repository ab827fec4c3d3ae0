package records

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store/warc"
)

// IsWARC reports whether a file name is that of a closed WARC file.
func IsWARC(name string) bool {
	return strings.HasSuffix(name, ".warc.gz") || strings.HasSuffix(name, ".warc.zst")
}

// EachWARC calls f with each closed WARC file in a crawl's folder.
func EachWARC(dir string, f func(name string, src io.ReaderAt, in *warc.Reader) error) error {
	names, err := vfs.OS.List(filepath.Join(dir, "warc"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if !IsWARC(name) {
			continue
		}
		if err := readWARC(filepath.Join(dir, "warc", name), name, f); err != nil {
			return fmt.Errorf("warc/%s: %w", name, err)
		}
	}
	return nil
}

func readWARC(path, name string, f func(name string, src io.ReaderAt, in *warc.Reader) error) error {
	size, err := vfs.OS.Size(path)
	if err != nil {
		return err
	}
	src, err := vfs.OS.OpenAt(path)
	if err != nil {
		return err
	}
	defer src.Close() //nolint:errcheck // it is only read
	in, err := warc.NewReader(src, size, name)
	if err != nil {
		return err
	}
	return f(name, src, in)
}
