package frontier

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"kumo/internal/base/vfs"
)

// errNotResident is never returned to callers of the package.
var errNotResident = errors.New("a frame is not in memory")

// A pager reads frames without holding the frontier's lock. A function that needs a frame that is not in memory fails
// with errNotResident and makes no further changes. Then run releases the lock, reads the frame, and calls the function
// again. Frames are immutable, so they are valid whatever changed meanwhile. The frontier's lock guards the pager. The
// pager of a frontier in memory is nil and only calls functions.
type pager struct {
	mu         *sync.Mutex // the frontier's lock
	segments   *segments
	requests   []frameRequest // missing frames of the current function
	resident   map[loc][]byte // frames read for the current function
	spare      [][]byte       // read buffers for reuse
	duplicates []io.Closer    // files that were opened twice; the segmentWriter closes them
}

// A frameRequest is a frame to read.
type frameRequest struct {
	at       loc
	hint     int64 // expected length, so that one read is enough
	seg      *segment
	src      vfs.ReaderAt
	from, to int // range of its body in the read buffer
	body     []byte
}

const (
	spareReads = 2       // buffers for reuse
	maxSpare   = 4 << 20 // maximum size of one in bytes
)

func newPager(mu *sync.Mutex, s *segments) *pager {
	return &pager{mu: mu, segments: s, resident: map[loc][]byte{}}
}

// frame returns a frame's body, which is valid until the lock is released. The hint is the expected length. If the
// frame is not in memory, run reads it.
func (p *pager) frame(at loc, hint int64) ([]byte, error) {
	if body := p.segments.behind.frame(at); body != nil {
		return body, nil
	}
	if body := p.resident[at]; body != nil {
		return body, nil
	}
	p.requests = append(p.requests, frameRequest{at: at, hint: hint})
	return nil, errNotResident
}

// block returns a block that is in memory; see frame.
func (p *pager) block(at loc) (block, error) {
	frame, err := p.frame(at, readAhead)
	if err != nil {
		return block{}, err
	}
	var r reader
	b, err := r.block(bytes.Clone(frame))
	if err != nil {
		return b, p.damaged(at, err)
	}
	b.size = int64(len(frame) + frameLen)
	return b, nil
}

func (p *pager) damaged(at loc, err error) error {
	return fmt.Errorf("read %s at %d: %w", p.segments.folder.segment(at.segment()), at.offset(), err)
}

// run calls a function with the lock held. When the function lacked frames, run reads them without the lock and calls
// the function again. So the function must be restartable, whatever changed. Frames stay in memory until run returns.
func (p *pager) run(do func() error) error {
	if p != nil {
		p.requests = p.requests[:0] // from calls of frame outside run
	}
	err := do()
	if !errors.Is(err, errNotResident) {
		return err
	}
	var got []frameRequest
	for errors.Is(err, errNotResident) {
		wants, buf := p.requests, p.spareBuffer()
		p.requests = nil
		buf, err = p.read(wants, buf)
		defer p.recycle(buf)
		if got == nil {
			got = wants
		} else {
			got = append(got, wants...)
		}
		if err == nil {
			for i := range got {
				p.resident[got[i].at] = got[i].body
			}
			err = do()
			clear(p.resident)
		}
	}
	if clear(got); p.requests == nil {
		p.requests = got[:0]
	}
	return err
}

// pin keeps all segment files until unpin.
func (p *pager) pin() {
	if p != nil {
		p.segments.retained.pin()
	}
}

func (p *pager) unpin() {
	if p != nil {
		p.segments.retained.unpin()
	}
}

// spareBuffer returns a buffer to read into.
func (p *pager) spareBuffer() []byte {
	n := len(p.spare)
	if n == 0 {
		return nil
	}
	buf := p.spare[n-1]
	p.spare = p.spare[:n-1]
	return buf
}

func (p *pager) recycle(buf []byte) {
	if cap(buf) <= maxSpare && len(p.spare) < spareReads {
		p.spare = append(p.spare, buf[:0])
	}
}

// read reads frames one after the other into a buffer that it extends. It releases the lock meanwhile.
func (p *pager) read(wants []frameRequest, buf []byte) ([]byte, error) {
	for i := range wants {
		w := &wants[i]
		if w.seg = p.segments.find(w.at.segment()); w.seg == nil {
			return buf, fmt.Errorf("read the frontier: segment %d is missing", w.at.segment())
		}
	}
	for i := range wants {
		wants[i].seg.readers++
		wants[i].src = wants[i].seg.src
	}
	p.mu.Unlock()
	var err error
	for i := range wants {
		w := &wants[i]
		if i > 0 && w.src == nil && w.seg == wants[i-1].seg {
			w.src = wants[i-1].src
		}
		if buf, err = w.read(p.segments.folder, buf); err != nil {
			err = p.damaged(w.at, err)
			break
		}
	}
	p.mu.Lock()
	for i := range wants {
		w := &wants[i]
		w.body = buf[w.from:w.to]
		w.seg.readers--
		p.keepOpen(w)
	}
	p.segments.retained.collect()
	return buf, err
}

// keepOpen keeps an opened file for the next read, unless another call has opened it too.
func (p *pager) keepOpen(w *frameRequest) {
	switch src := w.src; {
	case src == nil || src == w.seg.src:
	case w.seg.src == nil:
		w.seg.src = src
	case !slices.Contains(p.duplicates, io.Closer(src)):
		p.duplicates = append(p.duplicates, src)
	}
	w.src = nil
}

// read appends a frame to a buffer, and records the position of its body.
func (w *frameRequest) read(files folder, buf []byte) ([]byte, error) {
	if w.src == nil {
		src, err := files.disk.OpenAt(files.segment(w.at.segment()))
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

// bytes reads up to n bytes and appends them. It fails if it cannot read a frame's head.
func (w *frameRequest) bytes(buf []byte, n int) ([]byte, error) {
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
