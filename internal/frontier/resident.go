package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"kumo/internal/vfs"
)

// Nothing waits for the disk with the frontier's lock held. What needs a frame that is not in memory fails with errNotResident, changes
// nothing more, and notes which; paged gives the lock up, reads it, and begins again. A frame never changes: what was read
// is right whatever has happened meanwhile.

// errNotResident never leaves the package.
var errNotResident = errors.New("a frame is not in memory")

// A want is a frame that is to be read.
type want struct {
	at   loc
	hint int64 // how long it may be, so that one read is enough
	seg  *segment
	src  vfs.ReaderAt
	buf  *[]byte
	body []byte // of the frame, in buf or on its way to the file
	err  error
}

// buffers are for frames that are read.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// paged does something with the lock held, and again whenever that lacks frames, which are read in between without the lock. It is to be
// such that it can be begun again, whatever has changed. What was read is kept until it ends.
func (f *Frontier) paged(do func() error) error {
	if f.disk != nil {
		f.disk.segments.wants = f.disk.segments.wants[:0] // what nobody has asked paged for
	}
	err := do()
	if !errors.Is(err, errNotResident) {
		return err
	}
	s := f.disk.segments
	var got []want
	for errors.Is(err, errNotResident) {
		wants := s.wants
		s.wants = nil
		err = f.read(wants)
		if got = append(got, wants...); err == nil {
			for i := range got {
				s.resident[got[i].at] = got[i].body
			}
			err = do()
			clear(s.resident)
		}
	}
	recycle(got)
	if s.wants == nil {
		s.wants = got[:0]
	}
	return err
}

// read reads frames. The lock, which is held, is given up meanwhile.
func (f *Frontier) read(wants []want) error {
	s := f.disk.segments
	for i := range wants {
		w := &wants[i]
		if w.seg = s.find(w.at.segment()); w.seg == nil {
			return fmt.Errorf("read the frontier: no segment %d", w.at.segment())
		}
	}
	for i := range wants {
		w := &wants[i]
		w.seg.readers++
		w.src = w.seg.src
		w.body = bytesAt(s.behind.frame(w.at), &w.buf)
	}
	f.mu.Unlock()
	for i := range wants {
		if w := &wants[i]; w.body == nil {
			if i > 0 && w.src == nil && w.seg == wants[i-1].seg {
				w.src = wants[i-1].src
			}
			w.err = w.read(s)
		}
	}
	f.mu.Lock()
	var err error
	for i := range wants {
		w := &wants[i]
		w.seg.readers--
		if err == nil {
			err = w.err
		}
		s.keepOpen(w)
	}
	s.bury()
	return err
}

// bytesAt copies a frame that is on its way to its file; nil if there is none.
func bytesAt(frame []byte, buf **[]byte) []byte {
	if frame == nil {
		return nil
	}
	b := buffers.Get().(*[]byte)
	*b = append((*b)[:0], frame...)
	*buf = b
	return *b
}

// read reads a frame's body from the file.
func (w *want) read(s *segments) (err error) {
	name := s.name(w.at.segment())
	defer func() {
		if err != nil {
			err = damaged(name, w.at.offset(), err)
		}
	}()
	if w.src == nil {
		src, err := s.disk.OpenAt(name)
		if err != nil {
			return err
		}
		w.src = src
	}
	w.buf = buffers.Get().(*[]byte)
	head, err := w.bytes(int(max(w.hint, frameLen)))
	if err != nil {
		return err
	}
	n, sum := int(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	if n > maxFrame {
		return errBlock
	}
	if len(head) < frameLen+n {
		if head, err = w.bytes(frameLen + n); err != nil {
			return err
		}
		if len(head) < frameLen+n {
			return io.ErrUnexpectedEOF
		}
	}
	w.body = head[frameLen : frameLen+n]
	if crc32.Checksum(w.body, castagnoli) != sum {
		return errBlock
	}
	return nil
}

// bytes reads up to n bytes, a frame's head at least.
func (w *want) bytes(n int) ([]byte, error) {
	*w.buf = slices.Grow((*w.buf)[:0], n)[:n]
	n, err := w.src.ReadAt(*w.buf, w.at.offset())
	switch {
	case errors.Is(err, io.EOF) && n >= frameLen:
		err = nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return (*w.buf)[:n], err
}

// keepOpen keeps a file that was opened for who reads it next, unless somebody else has opened it, too.
func (s *segments) keepOpen(w *want) {
	switch src := w.src; {
	case src == nil || src == w.seg.src:
	case w.seg.src == nil:
		w.seg.src = src
	case !slices.Contains(s.surplus, io.Closer(src)):
		s.surplus = append(s.surplus, src)
	}
	w.src = nil
}

func recycle(wants []want) {
	for i := range wants {
		if wants[i].buf != nil {
			buffers.Put(wants[i].buf)
		}
	}
	clear(wants)
}
