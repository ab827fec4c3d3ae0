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

// SalvageScopeSeeds copies all valid entries of the file of scope seeds of the crawl in dir to a new file in the folder
// to. It returns the length of the file up to the first damage.
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
	defer func() { _ = src.Close() }() // read only
	if whole, err = salvageScopeSeeds(src, kept.Add); err == nil {
		_, err = kept.Mark()
	}
	return whole, err
}

// maxSeed is an upper bound of an entry's length in bytes.
const maxSeed = 64 << 10

// salvageScopeSeeds calls f with all valid entries. After damage it continues at the next position where an entry has a
// correct checksum.
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

// firstSeed returns the entry at the start of text and its length, 0 if there is no entry.
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
