package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"kumo/internal/base/vfs"
)

// Nothing waits for the disk with the frontier's lock held. What needs a frame that is not in memory fails with
// errNotResident, changes nothing more, and notes which; paged gives the lock up, reads it, and begins again. A frame
// never changes: what was read is right whatever has happened meanwhile.

// errNotResident never leaves the package.
var errNotResident = errors.New("a frame is not in memory")

// A want is a frame that is to be read.
type want struct {
	at       loc
	hint     int64 // how long it may be, so that one read is enough
	seg      *segment
	src      vfs.ReaderAt
	from, to int // of its body, among all that is read
	body     []byte
}

const (
	spareReads = 2       // buffers that are used again
	maxSpare   = 4 << 20 // bytes of one
)

// paged does something with the lock held, and again whenever that lacks frames, which are read in between without the
// lock. It is to be such that it can be begun again, whatever has changed. What was read is kept until it ends.
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
		wants, buf := s.wants, s.spareRead()
		s.wants = nil
		buf, err = f.read(wants, buf)
		defer s.recycle(buf)
		if got == nil {
			got = wants
		} else {
			got = append(got, wants...)
		}
		if err == nil {
			for i := range got {
				s.resident[got[i].at] = got[i].body
			}
			err = do()
			clear(s.resident)
		}
	}
	if clear(got); s.wants == nil {
		s.wants = got[:0]
	}
	return err
}

// spareRead is a buffer to read into.
func (s *segments) spareRead() []byte {
	n := len(s.spare)
	if n == 0 {
		return nil
	}
	buf := s.spare[n-1]
	s.spare = s.spare[:n-1]
	return buf
}

func (s *segments) recycle(buf []byte) {
	if cap(buf) <= maxSpare && len(s.spare) < spareReads {
		s.spare = append(s.spare, buf[:0])
	}
}

// read reads frames, one after the other, into a buffer that grows. The lock, which is held, is given up meanwhile.
func (f *Frontier) read(wants []want, buf []byte) ([]byte, error) {
	s := f.disk.segments
	for i := range wants {
		w := &wants[i]
		if w.seg = s.find(w.at.segment()); w.seg == nil {
			return buf, fmt.Errorf("read the frontier: no segment %d", w.at.segment())
		}
	}
	for i := range wants {
		wants[i].seg.readers++
		wants[i].src = wants[i].seg.src
	}
	f.mu.Unlock()
	var err error
	for i := range wants {
		w := &wants[i]
		if i > 0 && w.src == nil && w.seg == wants[i-1].seg {
			w.src = wants[i-1].src
		}
		if buf, err = w.read(s, buf); err != nil {
			err = damaged(s.name(w.at.segment()), w.at.offset(), err)
			break
		}
	}
	f.mu.Lock()
	for i := range wants {
		w := &wants[i]
		w.body = buf[w.from:w.to]
		w.seg.readers--
		s.keepOpen(w)
	}
	s.bury()
	return buf, err
}

// read appends what is read of a frame to a buffer, and notes where its body is.
func (w *want) read(s *segments, buf []byte) ([]byte, error) {
	if w.src == nil {
		src, err := s.disk.OpenAt(s.name(w.at.segment()))
		if err != nil {
			return buf, err
		}
		w.src = src
	}
	start := len(buf)
	buf, err := w.bytes(buf, int(max(w.hint, frameLen)))
	if err != nil {
		return buf, err
	}
	n, sum := int(binary.LittleEndian.Uint32(buf[start:])), binary.LittleEndian.Uint32(buf[start+4:])
	if n > maxFrame {
		return buf, errBlock
	}
	if len(buf)-start < frameLen+n {
		if buf, err = w.bytes(buf[:start], frameLen+n); err != nil {
			return buf, err
		}
		if len(buf)-start < frameLen+n {
			return buf, io.ErrUnexpectedEOF
		}
	}
	buf = buf[:start+frameLen+n]
	if crc32.Checksum(buf[start+frameLen:], castagnoli) != sum {
		return buf, errBlock
	}
	w.from, w.to = start+frameLen, len(buf)
	return buf, nil
}

// bytes appends up to n bytes, a frame's head at least.
func (w *want) bytes(buf []byte, n int) ([]byte, error) {
	start := len(buf)
	buf = slices.Grow(buf, n)[:start+n]
	n, err := w.src.ReadAt(buf[start:], w.at.offset())
	switch {
	case errors.Is(err, io.EOF) && n >= frameLen:
		err = nil
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return buf[:start+n], err
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
