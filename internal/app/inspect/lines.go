package inspect

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// A LineIndex finds lines in a crawl's files by their prefix without reading the whole file. It stores three bytes per
// line. The index is built in the background on the first query and extended on each later one. The files are
// append-only, or are replaced. The zero value is an empty index.
type LineIndex struct {
	syncBytes int64       // index size in bytes up to which a query waits; default 4 MiB
	limit     int         // maximum number of indexed lines per file; default maxLines
	closed    atomic.Bool // Close was called

	mu    sync.Mutex // guards files
	files map[string]*lineFile
}

// Close stops indexing in the background. There must be no more queries.
func (l *LineIndex) Close() { l.closed.Store(true) }

// ErrReading means that the file is being indexed for the first time, and that there may be more matching lines.
var ErrReading = errors.New("the crawl's files are being indexed: try again in a moment")

type lineFile struct {
	mu        sync.Mutex    // guards the fields below
	reading   chan struct{} // closed when the running indexing ends; nil: none runs
	confirmed bool          // the running indexing has verified the existing table
	err       error         // of the last indexing
	lineTable
}

// A lineTable contains the hashes of lines. It only grows, or is replaced, so a copy remains valid.
type lineTable struct {
	hashes    []uint16 // low 16 bits, one per line
	highBytes []uint8  // high 8 bits, one per line
	parts     []linePart
	last      int64 // offset of the last line
	end       int64 // offset of its end
	complete  bool  // the file has been indexed to its end at least once
}

// A linePart is a block of lines that are read together.
type linePart struct {
	at   int64
	line int // index of the first line
}

const (
	partBytes = 16 << 10
	maxLines  = 16 << 20 // per file, which take 48 MB; each query scans the rest of the file
	stepLines = 1 << 12  // lines that are added to the table at once
	paceBytes = 1 << 20  // read between two pauses
)

// find returns the lines of a file with a prefix, which must end with a string and a comma. With ErrReading, there may
// be more.
func (l *LineIndex) find(ctx context.Context, disk vfs.FS, name string, begin []byte) (e firstLast, err error) {
	f := l.file(name)
	t, rest, err := l.current(ctx, f, disk, name)
	if err != nil && !errors.Is(err, ErrReading) {
		return e, err
	}
	late := err
	src, err := disk.OpenAt(name)
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer func() { _ = src.Close() }() // it is only read
	keep := func(line []byte) {
		if bytes.HasPrefix(line, begin) {
			e.add(bytes.Clone(line))
		}
	}
	if err := t.eachCandidate(ctx, src, hashOf(begin), keep); err != nil {
		return e, err
	}
	if late == nil && rest {
		late = scanTail(ctx, src, t.end, keep)
	}
	return e, late
}

// current returns the table of a file, including all lines at the time of the call. rest is true if the caller must
// scan the lines after the table. The error is ErrReading if indexing takes too long.
func (l *LineIndex) current(ctx context.Context, f *lineFile, disk vfs.FS, name string) (t lineTable,
	rest bool, err error) {
	var late <-chan time.Time
	var gone <-chan struct{}
	// Small updates take no time. If the disk hangs, the caller waits as for any file.
	if l.isSlow(f, disk, name) {
		late, gone = time.After(lineTimeout), ctx.Done()
	}
	for mine := false; ; {
		f.mu.Lock()
		reading := f.reading
		t, err = f.lineTable, f.err
		if reading == nil && !mine {
			reading, mine = make(chan struct{}), true
			f.reading = reading
			go l.update(f, disk, name)
		}
		f.mu.Unlock()
		if reading == nil {
			return t, len(t.hashes) >= l.lineLimit(), err
		}
		select {
		case <-reading:
		case <-late:
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.complete && f.confirmed {
				return f.lineTable, true, nil
			}
			return f.lineTable, false, ErrReading
		case <-gone:
			return t, false, ctx.Err()
		}
	}
}

// isSlow reports whether indexing the rest of the file takes long. If the file was truncated, the rest is all of it.
func (l *LineIndex) isSlow(f *lineFile, disk vfs.FS, name string) bool {
	f.mu.Lock()
	end := f.end
	f.mu.Unlock()
	size, err := disk.Size(name)
	if size >= end {
		size -= end
	}
	return err == nil && size >= cmp.Or(l.syncBytes, 4<<20)
}

// lineTimeout is how long a query waits for a slow update. A response may need lines of several files.
const lineTimeout = 40 * time.Millisecond

// update indexes the lines added since the last call.
func (l *LineIndex) update(f *lineFile, disk vfs.FS, name string) {
	err := func() error {
		src, err := disk.OpenAt(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = src.Close() }() // it is only read
		if err := f.confirm(src); err != nil {
			return err
		}
		return l.extend(f, src)
	}()
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.reading)
	f.reading, f.confirmed, f.err = nil, false, err
	f.complete = f.complete || err == nil
}

// maxPause limits one pause; a slow read may itself have been waiting.
const maxPause = 100 * time.Millisecond

// A pacedReader pauses after each block for as long as processing it took, to leave resources to the running crawl.
type pacedReader struct {
	src  io.Reader
	n    int
	from time.Time
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if p.n >= paceBytes {
		time.Sleep(min(time.Since(p.from), maxPause))
		p.n = 0
	}
	if p.n == 0 {
		p.from = time.Now()
	}
	n, err := p.src.Read(b)
	p.n += n
	return n, err
}

func (l *LineIndex) lineLimit() int { return cmp.Or(l.limit, maxLines) }

// scanTail reads the lines after the index, as long as the caller waits. It does not run in the background, because
// each query would start over.
func scanTail(ctx context.Context, src vfs.ReaderAt, from int64, tell func(line []byte)) error {
	_, err := store.EachLine(io.NewSectionReader(src, from, math.MaxInt64-from), func(line []byte, _ int64) error {
		tell(line)
		return ctx.Err()
	})
	return err
}

func (l *LineIndex) file(name string) *lineFile {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]*lineFile{}
	}
	if l.files[name] == nil {
		l.files[name] = &lineFile{}
	}
	return l.files[name]
}

// confirm discards the table if the last line is not at its offset: the file was truncated or replaced.
func (f *lineFile) confirm(src vfs.ReaderAt) error {
	t := &f.lineTable // only this goroutine changes it
	if t.end == 0 {
		return nil
	}
	line := make([]byte, t.end-t.last)
	n, err := src.ReadAt(line, t.last)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	same := n == len(line) && bytes.IndexByte(line, '\n') == n-1
	if same {
		h := hashOf(line[:n-1])
		i := len(t.hashes) - 1
		same = uint16(h) == t.hashes[i] && uint8(h>>16) == t.highBytes[i]
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.confirmed = same; !same {
		f.lineTable = lineTable{}
	}
	return nil
}

var errClosed = errors.New("the line index is closed")

// extend indexes the lines after the table's end.
func (l *LineIndex) extend(f *lineFile, src vfs.ReaderAt) error {
	t, from := f.lineTable, f.end
	keep := func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lineTable = t
	}
	defer keep()
	_, err := store.EachLine(&pacedReader{src: io.NewSectionReader(src, from, math.MaxInt64-from)},
		func(line []byte, at int64) error {
			if len(t.hashes) >= l.lineLimit() {
				return io.EOF
			}
			if at += from; len(t.parts) == 0 || at-t.parts[len(t.parts)-1].at >= partBytes {
				t.parts = append(t.parts, linePart{at, len(t.hashes)})
			}
			h := hashOf(line)
			t.hashes, t.highBytes = append(t.hashes, uint16(h)), append(t.highBytes, uint8(h>>16))
			t.last, t.end = at, at+int64(len(line))+1
			if len(t.hashes)%stepLines != 0 {
				return nil
			}
			if keep(); l.closed.Load() {
				return errClosed
			}
			return nil
		})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// eachCandidate calls tell with all lines of the parts in which a line has the hash.
func (t *lineTable) eachCandidate(ctx context.Context, src vfs.ReaderAt, hash uint32, tell func(line []byte)) error {
	part, lines := 0, []byte(nil)
	for i, h := range t.hashes {
		if h != uint16(hash) || t.highBytes[i] != uint8(hash>>16) {
			continue
		}
		for part+1 < len(t.parts) && t.parts[part+1].line <= i {
			part++
		}
		if part == len(t.parts) || t.parts[part].line > i { // that part was read
			continue
		}
		end := t.end
		if part+1 < len(t.parts) {
			end = t.parts[part+1].at
		}
		at := t.parts[part].at
		lines = slices.Grow(lines[:0], int(end-at))[:end-at]
		if _, err := src.ReadAt(lines, at); errors.Is(err, io.EOF) { // the file was truncated since
			return ErrReading
		} else if err != nil {
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

// hashOf returns a 24-bit hash of a line's first member.
func hashOf(line []byte) uint32 {
	if i := bytes.Index(line, []byte(`",`)); i >= 0 {
		line = line[:i]
	}
	return uint32(maphash.Bytes(lineSeed, line)) & (1<<24 - 1)
}

// UseLines makes the view use a line index that it may share with other views.
func (v *View) UseLines(l *LineIndex) { v.lines = l }

// linesOf returns the first and last line of a file with the prefix.
func (v *View) linesOf(ctx context.Context, name string, begin []byte) (e firstLast, err error) {
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
	if err != nil && !errors.Is(err, ErrReading) {
		err = fmt.Errorf("read %s: %w", name, err)
	}
	return e, err
}
