package file

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/base/vfs"
)

// Salvage calls f with every valid batch in the segments of the journal in dir, and skips all other bytes. It returns
// the number of bytes that belong to no batch. After damage, the contents of a batch may be mistaken for a frame, and a
// web server may have crafted them: f must treat batches as untrusted input.
func Salvage(disk vfs.FS, dir string, f func(batch []byte) error) (lost int64, err error) {
	names, err := disk.List(dir)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return 0, nil //nolint:nilerr // a journal in one file, of another version
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		n, err := salvageSegment(disk, filepath.Join(dir, name), f)
		if lost += n; err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// salvageSegment is Salvage for one segment. It holds one batch at a time in memory.
func salvageSegment(disk vfs.FS, name string, f func(batch []byte) error) (lost int64, err error) {
	size, err := disk.Size(name)
	if err != nil {
		return 0, err
	}
	src, err := disk.OpenAt(name)
	if err != nil {
		return 0, err
	}
	defer func() { _ = src.Close() }() // read only
	in := bufio.NewReaderSize(nil, 256<<10)
	var frame []byte
	goTo := func(at int64) { in.Reset(io.NewSectionReader(src, at, size-at)) }
	at := min(int64(headLen), size)
	for goTo(at); at < size; {
		head, err := in.Peek(frameLen)
		if err != nil && !errors.Is(err, io.EOF) {
			return lost, err
		}
		n, ok := frameSize(head)
		if end := at + int64(frameLen+n); ok && end <= size {
			frame, err = vfs.ReadN(io.NewSectionReader(src, at, end-at), frame[:0], frameLen+n)
			if err != nil {
				return lost, err
			}
			if isFrame(frame) {
				if err := f(frame[frameLen:]); err != nil {
					return lost, err
				}
				at = end
				goTo(at)
				continue
			}
		}
		if _, err := in.Discard(1); err != nil {
			return lost, err
		}
		at++
		lost++
	}
	return lost, nil
}
