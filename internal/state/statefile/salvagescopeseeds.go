package statefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"path/filepath"

	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
)

// SalvageScopeSeeds makes a file of scope seeds for the crawl in the folder to, of all that is whole in that of the
// crawl in dir. It returns up to where that one is whole without a gap.
func SalvageScopeSeeds(disk vfs.FS, dir, to string) (whole int64, err error) {
	kept, err := OpenScopeSeeds(disk, to, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, kept.Sync(), kept.Close()) }()
	src, err := disk.Open(filepath.Join(dir, ScopeSeedsName))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // it is only read
	if whole, err = salvageScopeSeeds(src, kept.Add); err == nil {
		_, err = kept.Mark()
	}
	return whole, err
}

// maxSeed is more bytes than an entry has.
const maxSeed = 64 << 10

// salvageScopeSeeds calls f with all entries that are as they were written. Behind damage it goes on at the next place
// where an entry begins: its checksum tells.
func salvageScopeSeeds(src io.Reader, f func(SeedEntry) error) (whole int64, err error) {
	in := bufio.NewReaderSize(src, 2*maxSeed)
	gap := false
	for {
		text, err := in.Peek(maxSeed + binary.MaxVarintLen64)
		if len(text) == 0 {
			if errors.Is(err, io.EOF) {
				return whole, nil
			}
			return whole, err
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return whole, err
		}
		r, n := firstSeed(text)
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

// firstSeed is the entry that text begins with, and the length of its entry; 0 if text begins with none.
func firstSeed(text []byte) (SeedEntry, int) {
	size, head := binary.Uvarint(text)
	if head <= 0 || size > maxSeed || int(size) > len(text)-head {
		return SeedEntry{}, 0
	}
	r, err := parseSeed(text[head : head+int(size)])
	if err != nil {
		return SeedEntry{}, 0
	}
	if u, err := weburl.Parse(r.URL); err != nil || u.Host() == "" {
		return SeedEntry{}, 0
	}
	return r, head + int(size)
}
