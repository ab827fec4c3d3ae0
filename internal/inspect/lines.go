package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"

	"kumo/internal/store"
	"kumo/internal/vfs"
)

// Lines know where lines of a crawl's files are, by how they begin, so that little of a file is read for one: two bytes
// a line, which the first look at a file gathers, and each goes on with. The files only grow, or are begun anew. The zero
// value knows none.
type Lines struct {
	mu    sync.Mutex // guards files
	files map[string]*lineFile
}

// A lineFile is what is known of one file.
type lineFile struct {
	turn   chan struct{} // whoever looks has it
	hashes []uint16      // of each line
	parts  []linePart
	last   int64 // where the last line begins
	end    int64 // behind it
}

// A linePart is some lines that are read together.
type linePart struct {
	at   int64
	line int // the first one's number
}

const (
	partBytes = 64 << 10
	maxLines  = 16 << 20 // of a file, which take 32 MB; those behind are looked at one by one
)

// find goes through the lines of a file that begin so. What they begin with ends with a comma behind a string.
func (l *Lines) find(ctx context.Context, disk vfs.FS, name string, begin []byte) (e ends, err error) {
	f := l.of(name)
	select {
	case f.turn <- struct{}{}:
		defer func() { <-f.turn }()
	case <-ctx.Done():
		return e, ctx.Err()
	}
	src, err := disk.OpenAt(name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer func() { _ = src.Close() }() // it is only read
	if err := f.confirm(src); err != nil {
		return e, err
	}
	keep := func(line []byte) {
		if bytes.HasPrefix(line, begin) {
			e.add(bytes.Clone(line))
		}
	}
	known := f.end
	var fresh ends // which are newer than those that are known
	if err := f.readOn(ctx, src, func(line []byte) {
		if bytes.HasPrefix(line, begin) {
			fresh.add(bytes.Clone(line))
		}
	}); err != nil {
		return e, err
	}
	if err := f.among(ctx, src, known, hashOf(begin), keep); err != nil {
		return e, err
	}
	if fresh.first != nil {
		e.add(fresh.first)
		e.last = fresh.last
	}
	return e, nil
}

func (l *Lines) of(name string) *lineFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]*lineFile{}
	}
	if l.files[name] == nil {
		l.files[name] = &lineFile{turn: make(chan struct{}, 1)}
	}
	return l.files[name]
}

// confirm forgets what is known if the last line is not where it was: the file was cut back, or begun anew.
func (f *lineFile) confirm(src vfs.ReaderAt) error {
	if f.end == 0 {
		return nil
	}
	line := make([]byte, f.end-f.last)
	n, err := src.ReadAt(line, f.last)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(line) || bytes.IndexByte(line, '\n') != n-1 || hashOf(line[:n-1]) != f.hashes[len(f.hashes)-1] {
		f.hashes, f.parts, f.last, f.end = nil, nil, 0, 0
	}
	return nil
}

// readOn takes in the lines that have come since, and tells them.
func (f *lineFile) readOn(ctx context.Context, src vfs.ReaderAt, tell func(line []byte)) error {
	from := f.end
	_, err := store.EachLine(io.NewSectionReader(src, from, math.MaxInt64-from), func(line []byte, at int64) error {
		if len(f.hashes) < maxLines {
			if at += from; len(f.parts) == 0 || at-f.parts[len(f.parts)-1].at >= partBytes {
				f.parts = append(f.parts, linePart{at, len(f.hashes)})
			}
			f.hashes = append(f.hashes, hashOf(line))
			f.last, f.end = at, at+int64(len(line))+1
		}
		tell(line)
		return ctx.Err()
	})
	return err
}

// among tells the lines before a place of those parts where one may have a hash.
func (f *lineFile) among(ctx context.Context, src vfs.ReaderAt, before int64, hash uint16, tell func(line []byte)) error {
	part, lines := 0, []byte(nil)
	for i, h := range f.hashes {
		if h != hash {
			continue
		}
		for part+1 < len(f.parts) && f.parts[part+1].line <= i {
			part++
		}
		if part == len(f.parts) || f.parts[part].line > i { // that part was told
			continue
		}
		if f.parts[part].at >= before {
			break
		}
		end := f.end
		if part+1 < len(f.parts) {
			end = f.parts[part+1].at
		}
		at := f.parts[part].at
		lines = slices.Grow(lines[:0], int(min(end, before)-at))[:min(end, before)-at]
		if _, err := src.ReadAt(lines, at); err != nil {
			return err
		}
		for line := range bytes.Lines(lines) {
			tell(bytes.TrimSuffix(line, []byte("\n")))
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		part++
	}
	return nil
}

var lineSeed = maphash.MakeSeed()

// hashOf is that of a line's first member.
func hashOf(line []byte) uint16 {
	if i := bytes.Index(line, []byte(`",`)); i >= 0 {
		line = line[:i]
	}
	return uint16(maphash.Bytes(lineSeed, line))
}

// KeepLines has a view find lines of the crawl's files by what was learnt of them for others, too.
func (v *View) KeepLines(l *Lines) { v.lines = l }

// linesOf are those of a file that begin so.
func (v *View) linesOf(ctx context.Context, name string, begin []byte) (e ends, err error) {
	if v.lines != nil {
		e, err = v.lines.find(ctx, v.disk, name, begin)
	} else {
		_, err = store.EachLineOf(v.disk, name, func(line []byte, _ int64) error {
			if bytes.HasPrefix(line, begin) {
				e.add(bytes.Clone(line))
			}
			return ctx.Err()
		})
	}
	if err != nil {
		return e, fmt.Errorf("read %s: %w", name, err)
	}
	return e, nil
}
