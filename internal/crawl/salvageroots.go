package crawl

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/vfs"
	"kumo/internal/weburl"
)

// SalvageRoots makes a file of roots for the crawl in the folder to, of all that is whole in that of the crawl in dir.
// It returns up to where that one is whole without a gap.
func SalvageRoots(disk vfs.FS, dir, to string) (whole int64, err error) {
	kept, err := OpenRoots(disk, to, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, kept.Sync(), kept.Close()) }()
	src, err := disk.Open(filepath.Join(dir, rootsName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // it is only read
	if whole, err = salvageRoots(src, kept.add); err == nil {
		_, err = kept.Mark()
	}
	return whole, err
}

// maxRoot is more bytes than an entry of a root has.
const maxRoot = 64 << 10

// salvageRoots calls f with all roots that are as they were written. Behind damage it goes on at the next place where
// an entry begins: its checksum tells.
func salvageRoots(src io.Reader, f func(root) error) (whole int64, err error) {
	in := bufio.NewReaderSize(src, 2*maxRoot)
	gap := false
	for {
		text, err := in.Peek(maxRoot + binary.MaxVarintLen64)
		if len(text) == 0 {
			if errors.Is(err, io.EOF) {
				return whole, nil
			}
			return whole, err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, err
		}
		r, n := firstRoot(text)
		if n == 0 {
			gap, n = true, 1
		} else if err := f(r); err != nil {
			return whole, err
		}
		if !gap {
			whole += int64(n)
		}
		if _, err := in.Discard(n); err != nil {
			return whole, err
		}
	}
}

// firstRoot is the root that text begins with, and the length of its entry; 0 if text begins with none.
func firstRoot(text []byte) (root, int) {
	size, head := binary.Uvarint(text)
	if head <= 0 || size > maxRoot || int(size) > len(text)-head {
		return root{}, 0
	}
	r, err := parseRoot(text[head : head+int(size)])
	if err != nil {
		return root{}, 0
	}
	if u, err := weburl.Parse(r.url); err != nil || u.Host() == "" {
		return root{}, 0
	}
	return r, head + int(size)
}
