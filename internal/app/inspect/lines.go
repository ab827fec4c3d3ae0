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

// LineIndex know where lines of a crawl's files are, by how they begin, so that little of a file is read for one: three
// bytes a line, which are gathered beside when somebody looks first, and gone on with at each look. The files only
// grow, or are begun anew. The zero value knows none.
type LineIndex struct {
	syncBytes int64       // bytes that are not waited for; default 4 MiB
	limit     int         // lines of a file that are known; default maxLines
	closed    atomic.Bool // nobody looks any more

	mu    sync.Mutex // guards files
	files map[string]*lineFile
}

// Close ends what goes on beside. Nobody looks for lines any more.
func (l *LineIndex) Close() { l.closed.Store(true) }

// ErrReading is what who looks for a line is told while the file is gone through for the first time: the line may be
// where that has not come to yet.
var ErrReading = errors.New("the crawl's files are being gone through: ask again in a moment")

type lineFile struct {
	mu        sync.Mutex    // guards all of this
	reading   chan struct{} // closed when who goes through the file has ended; nil: nobody does
	confirmed bool          // who does has found there what is known
	err       error         // of the last who did
	lineTable
}

// A lineTable has lines' hashes. It only grows, or is begun anew: a copy of it stays as it is.
type lineTable struct {
	hashes    []uint16 // of each line
	highBytes []uint8  // of each hash
	parts     []linePart
	last      int64 // where the last line begins
	end       int64 // behind it
	complete  bool  // the file was gone through to its end: what has come since is little
}

// A linePart is some lines that are read together.
type linePart struct {
	at   int64
	line int // the first one's number
}

const (
	partBytes = 16 << 10
	maxLines  = 16 << 20 // of a file, which take 48 MB; those behind are gone through by each who looks
	stepLines = 1 << 12  // that are taken in together
	paceBytes = 1 << 20  // that are read before a pause
)

// find goes through the lines of a file that begin so. What they begin with ends with a comma behind a string. Its
// error is ErrReading if there may be others.
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

// current is what is known of a file, with all lines that it had when it was asked for, unless there is a rest for who
// asks to go through. The error is ErrReading if it takes too long to know of all but that.
func (l *LineIndex) current(ctx context.Context, f *lineFile, disk vfs.FS, name string) (t lineTable,
	rest bool, err error) {
	var late <-chan time.Time
	var gone <-chan struct{}
	// or it takes no time, unless the disk hangs: then who asks waits for that, as for any file
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

// isSlow reports whether it takes long to go through what is not known of a file: of one that was cut back, all.
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

// lineTimeout is for how long much is waited for: an answer has lines of some files.
const lineTimeout = 40 * time.Millisecond

// update takes in the lines that have come since.
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

// maxPause is for how long at most who works beside a crawl rests at once: what took long may have waited itself.
const maxPause = 100 * time.Millisecond

// pacedReader reads some at a time, and pauses for as long as what was done with that took: there is a crawl beside.
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

// scanTail goes through the lines of which nothing is known, for as long as who asks waits: nobody else does so, and to
// begin again would come no further.
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

// confirm forgets what is known if the last line is not where it was: the file was cut back, or begun anew.
func (f *lineFile) confirm(src vfs.ReaderAt) error {
	t := &f.lineTable // which nobody else changes
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

var errClosed = errors.New("nobody looks for lines any more")

// extend takes in lines from where it is known what there is.
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

// eachCandidate tells the lines of those parts where one may have a hash.
func (t *lineTable) eachCandidate(ctx context.Context, src vfs.ReaderAt, hash uint32, tell func(line []byte)) error {
	part, lines := 0, []byte(nil)
	for i, h := range t.hashes {
		if h != uint16(hash) || t.highBytes[i] != uint8(hash>>16) {
			continue
		}
		for part+1 < len(t.parts) && t.parts[part+1].line <= i {
			part++
		}
		if part == len(t.parts) || t.parts[part].line > i { // that part was told
			continue
		}
		end := t.end
		if part+1 < len(t.parts) {
			end = t.parts[part+1].at
		}
		at := t.parts[part].at
		lines = slices.Grow(lines[:0], int(end-at))[:end-at]
		if _, err := src.ReadAt(lines, at); errors.Is(err, io.EOF) { // the file was cut back, which is not known yet
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

// hashOf is that of a line's first member: 24 bits.
func hashOf(line []byte) uint32 {
	if i := bytes.Index(line, []byte(`",`)); i >= 0 {
		line = line[:i]
	}
	return uint32(maphash.Bytes(lineSeed, line)) & (1<<24 - 1)
}

// UseLines has a view find lines of the crawl's files by what was learnt of them for others, too.
func (v *View) UseLines(l *LineIndex) { v.lines = l }

// linesOf are those of a file that begin so.
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
