package frontier

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"kumo/internal/base/vfs"
)

// A writeBehind has what was appended to segments and is not in their files: extents, the oldest first. Frames are read
// from it until then.
type writeBehind struct {
	extents []*extent
	open    *extent // the last of them, if it takes more
	bytes   int64   // of the others
	spare   [][]byte

	// For who holds the disk alone.
	file    vfs.File // of the segment that was written last; nil if none is open
	segment *segment
}

// An extent is a part of a segment, whole frames.
type extent struct {
	segment *segment
	from    int64 // in the segment
	data    []byte
	written int // of data; for who holds the disk alone
}

const spareExtents = 4

// append adds a frame at the end of a segment, the last that there is.
func (w *writeBehind) append(seg *segment, frame []byte, size int) {
	if w.open != nil && len(w.open.data)+len(frame) > size {
		w.seal()
	}
	if w.open == nil {
		p := &extent{segment: seg, from: seg.size}
		if n := len(w.spare); n > 0 {
			p.data, w.spare = w.spare[n-1], w.spare[:n-1]
		} else {
			p.data = make([]byte, 0, size)
		}
		w.open = p
		w.extents = append(w.extents, p)
	}
	w.open.data = append(w.open.data, frame...)
}

// seal ends the extent at hand: it may be written.
func (w *writeBehind) seal() {
	if w.open != nil {
		w.bytes += int64(len(w.open.data))
		w.open = nil
	}
}

// first is the extent that is to be written first, nil if there is none.
func (w *writeBehind) first() *extent {
	if len(w.extents) == 0 || w.extents[0] == w.open {
		return nil
	}
	return w.extents[0]
}

// drop forgets the first extent, which is in its file.
func (w *writeBehind) drop() {
	p := w.extents[0]
	w.bytes -= int64(len(p.data))
	if cap(p.data) <= writeBuffer && len(w.spare) < spareExtents {
		w.spare = append(w.spare, p.data[:0])
	}
	w.extents[0] = nil
	w.extents = w.extents[1:]
}

// frame is a frame's body, if it is in an extent; else nil.
func (w *writeBehind) frame(at loc) []byte {
	if len(w.extents) == 0 || at < w.extents[0].at() {
		return nil
	}
	i, found := slices.BinarySearchFunc(w.extents, at, func(p *extent, at loc) int { return cmp.Compare(p.at(), at) })
	if !found {
		i--
	}
	p := w.extents[i]
	begin := at.offset() - p.from + frameLen
	if p.segment.id != at.segment() || begin > int64(len(p.data)) {
		return nil
	}
	body := p.data[begin:]
	return body[:min(int(binary.LittleEndian.Uint32(p.data[begin-frameLen:])), len(body))]
}

func (p *extent) at() loc { return newLoc(p.segment.id, p.from) }

// has reports whether an extent of a segment is not in its file.
func (w *writeBehind) has(seg *segment) bool {
	return slices.ContainsFunc(w.extents, func(p *extent) bool { return p.segment == seg })
}

// write writes the rest of an extent to its file. After an error it may be called again: nothing is lost or torn.
func (s *segments) write(p *extent) error {
	w := &s.behind
	if w.segment != p.segment {
		if err := s.closeFile(); err != nil {
			return err
		}
		file, err := s.disk.Append(s.name(p.segment.id))
		if err != nil {
			return fmt.Errorf("make a segment of the frontier: %w", err)
		}
		w.file, w.segment = file, p.segment
	}
	n, err := w.file.Write(p.data[p.written:])
	p.written += n // what of it a failing write took is not written again
	if err != nil {
		return fmt.Errorf("write %s: %w", s.name(p.segment.id), err)
	}
	return nil
}

func (s *segments) closeFile() error {
	w := &s.behind
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file, w.segment = nil, nil
	return file.Close()
}

// remove removes a segment's file.
func (s *segments) remove(seg *segment) error {
	var err error
	if s.behind.segment == seg {
		err = s.closeFile()
	}
	if seg.src != nil {
		_ = seg.src.Close() // it was only read
		seg.src = nil
	}
	return errors.Join(err, s.disk.Remove(s.name(seg.id)))
}
