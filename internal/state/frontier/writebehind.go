package frontier

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// A writeBehind holds the frames that are not in their files yet, in extents, oldest first. Until then, frames are read
// from it. The frontier's lock guards it.
type writeBehind struct {
	extents []*extent
	open    *extent // the last extent, if it takes more frames
	bytes   int64   // size of the other extents
	spare   [][]byte
}

// An extent is a part of a segment. It consists of whole frames.
type extent struct {
	segment *segment
	from    int64 // offset in the segment
	data    []byte
	written int // bytes of data written to the file; owned by the segmentWriter
}

const spareExtents = 4

// append adds a frame at the end of the last segment.
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

// seal closes the open extent, so that it can be written.
func (w *writeBehind) seal() {
	if w.open != nil {
		w.bytes += int64(len(w.open.data))
		w.open = nil
	}
}

// first returns the extent to write first, nil if there is none.
func (w *writeBehind) first() *extent {
	if len(w.extents) == 0 || w.extents[0] == w.open {
		return nil
	}
	return w.extents[0]
}

// drop removes the first extent after it was written to its file.
func (w *writeBehind) drop() {
	p := w.extents[0]
	w.bytes -= int64(len(p.data))
	if cap(p.data) <= writeBuffer && len(w.spare) < spareExtents {
		w.spare = append(w.spare, p.data[:0])
	}
	w.extents[0] = nil
	w.extents = w.extents[1:]
}

// frame returns the body of a frame in an extent, nil if no extent has it.
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

// has reports whether an extent of a segment is not in its file yet.
func (w *writeBehind) has(seg *segment) bool {
	return slices.ContainsFunc(w.extents, func(p *extent) bool { return p.segment == seg })
}
