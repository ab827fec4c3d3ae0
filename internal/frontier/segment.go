package frontier

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/vfs"
)

const (
	segmentPrefix = "queue-"
	frameLen      = 8
	writeBuffer   = 256 << 10
	readAhead     = 1 << 10 // most blocks are shorter
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A segment is a file of frames: blocks, and chunks of buckets. A frame is its length and the CRC-32C of its body, four bytes each,
// little-endian, then the body, whose first byte is its kind. A segment only grows, until it is full.
type segment struct {
	id    uint32
	size  int64
	live  int64 // bytes of frames that are in use
	era   int   // of checkpoints, when it was made
	died  int   // the era when its last frame went
	stuck bool  // compaction did not empty it
	src   interface {
		io.ReaderAt
		io.Closer
	}
}

// segments are the files below a folder that hold frames.
type segments struct {
	disk vfs.FS
	dir  string
	full int64 // bytes at which a segment is
	era  int   // counts checkpoints

	all      map[uint32]*segment
	dead     []*segment // without frames in use, but named by a checkpoint
	last     uint32     // segment made
	current  *segment
	file     vfs.File
	buf      []byte           // the end of the current segment, not yet in the file
	unsynced map[uint32]bool  // whose ends may not be durable
	kept     int              // the last era whose checkpoint is durable, 0 if none is
	broken   error            // an fsync failed: no checkpoint can be trusted any more
	cutting  bool             // a checkpoint is being written
	saving   bool             // what is counted is so for the checkpoint, too
	cutLive  map[uint32]int64 // bytes in use for the checkpoint, by segment
	pins     int              // tours, for which dead segments stay

	size, live int64 // of all
	written    int64 // since the compactor last asked
	enc        writer
	scratch    []byte
}

func newSegments(disk vfs.FS, dir string, full int64) *segments {
	return &segments{disk: disk, dir: dir, full: full, era: 1, all: map[uint32]*segment{}, unsynced: map[uint32]bool{}}
}

func (s *segments) name(id uint32) string {
	return filepath.Join(s.dir, segmentPrefix+strconv.FormatUint(uint64(id), 10))
}

// append writes a frame and returns where it is and how long. After an error it may be called again: nothing is lost or torn.
func (s *segments) append(encode func(*writer)) (loc, int64, error) {
	s.enc.b = append(s.enc.b[:0], make([]byte, frameLen)...)
	encode(&s.enc)
	frame := s.enc.b
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameLen))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[frameLen:], castagnoli))
	if err := s.makeRoom(len(frame)); err != nil {
		return 0, 0, err
	}
	at, n := newLoc(s.current.id, s.current.size), int64(len(frame))
	s.buf = append(s.buf, frame...)
	s.current.size += n
	s.size += n
	s.written += n
	s.count(at, n)
	return at, n, nil
}

// makeRoom sees to it that a frame fits into the current segment and its buffer.
func (s *segments) makeRoom(n int) error {
	if s.current != nil && s.current.size > 0 && s.current.size+int64(n) > s.full {
		if err := s.flush(); err != nil {
			return err
		}
		done, file := s.current, s.file
		s.current, s.file = nil, nil
		s.retire(done)
		if err := file.Close(); err != nil {
			return err
		}
	}
	if s.current == nil {
		return s.roll()
	}
	if len(s.buf) > 0 && len(s.buf)+n > writeBuffer {
		return s.flush()
	}
	return nil
}

func (s *segments) roll() error {
	id := s.last + 1
	f, err := s.disk.Append(s.name(id))
	if err != nil {
		return fmt.Errorf("make a segment of the frontier: %w", err)
	}
	s.last = id
	s.current, s.file = &segment{id: id, era: s.era}, f
	s.all[id] = s.current
	s.unsynced[id] = true
	return nil
}

// flush hands the buffer to the file. What of it a failing write took is not written again.
func (s *segments) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	n, err := s.file.Write(s.buf)
	s.buf = s.buf[:copy(s.buf, s.buf[n:])]
	if err != nil {
		return fmt.Errorf("write %s: %w", s.name(s.current.id), err)
	}
	return nil
}

// frame returns a frame's body, which holds until the next call. The hint is how long the frame may be, so that one read is enough.
func (s *segments) frame(at loc, hint int64) ([]byte, error) {
	seg := s.find(at.segment())
	if seg == nil {
		return nil, fmt.Errorf("read the frontier: no segment %d", at.segment())
	}
	head, err := s.bytes(seg, at.offset(), int(min(hint, seg.size-at.offset())))
	if err == nil && len(head) < frameLen {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, damaged(s.name(seg.id), at.offset(), err)
	}
	n, sum := int(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	if n > maxFrame {
		return nil, damaged(s.name(seg.id), at.offset(), errBlock)
	}
	if len(head) < frameLen+n {
		if head, err = s.bytes(seg, at.offset(), frameLen+n); err == nil && len(head) < frameLen+n {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, damaged(s.name(seg.id), at.offset(), err)
		}
	}
	body := head[frameLen : frameLen+n]
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, damaged(s.name(seg.id), at.offset(), errBlock)
	}
	return body, nil
}

// find is a segment, or one that is dead and was kept for a tour.
func (s *segments) find(id uint32) *segment {
	if seg := s.all[id]; seg != nil || s.pins == 0 {
		return seg
	}
	for _, seg := range s.dead {
		if seg.id == id {
			return seg
		}
	}
	return nil
}

// bytes reads up to n bytes at an offset: from the buffer, or from the file.
func (s *segments) bytes(seg *segment, offset int64, n int) ([]byte, error) {
	inFile := seg.size
	if seg == s.current {
		inFile -= int64(len(s.buf))
		if offset >= inFile {
			b := s.buf[offset-inFile:]
			return b[:min(n, len(b))], nil
		}
	}
	if seg.src == nil {
		src, err := s.disk.OpenAt(s.name(seg.id))
		if err != nil {
			return nil, err
		}
		seg.src = src
	}
	s.scratch = slices.Grow(s.scratch[:0], n)[:min(int64(n), inFile-offset)]
	_, err := seg.src.ReadAt(s.scratch, offset)
	if more := n - len(s.scratch); more > 0 && seg == s.current {
		s.scratch = append(s.scratch, s.buf[:min(more, len(s.buf))]...)
	}
	return s.scratch, err
}

// count notes that n bytes at a place came into use, or went out of it.
func (s *segments) count(at loc, n int64) {
	seg := s.all[at.segment()]
	seg.live += n
	s.live += n
	if s.saving {
		s.cutLive[seg.id] += n
	}
	s.retire(seg)
}

// retire lets a segment go that is not in use: at once, or when no durable checkpoint names it.
func (s *segments) retire(seg *segment) {
	if seg.live > 0 || seg == s.current || s.all[seg.id] != seg {
		return
	}
	delete(s.all, seg.id)
	s.size -= seg.size
	if seg.died = s.era; s.cutting {
		seg.died++ // after the cut
	}
	s.dead = append(s.dead, seg)
	s.bury()
}

// namedBy reports whether the checkpoint that ended an era may name the segment.
func (s *segment) namedBy(era int) bool { return s.era <= era && s.died > era }

// bury removes dead segments that no checkpoint names.
func (s *segments) bury() {
	if s.broken != nil || s.pins > 0 {
		return // nobody knows which checkpoint holds, or what is read
	}
	s.dead = slices.DeleteFunc(s.dead, func(seg *segment) bool {
		if seg.namedBy(s.kept) || s.cutting && seg.namedBy(s.era) {
			return false
		}
		if seg.src != nil {
			_ = seg.src.Close() // it was only read
			seg.src = nil
		}
		delete(s.unsynced, seg.id)
		return s.disk.Remove(s.name(seg.id)) == nil
	})
}

// pass sees to it that no segment gets the number of a file that is there: a copy of the folder that somebody makes meanwhile may have
// a file from before, and a checkpoint from after.
func (s *segments) pass() error {
	names, err := s.disk.List(s.dir)
	for _, name := range names {
		if digits, ours := strings.CutPrefix(name, segmentPrefix); ours {
			if id, bad := strconv.ParseUint(digits, 10, 32); bad == nil {
				s.last = max(s.last, uint32(id))
			}
		}
	}
	return err
}

// clear removes the folder's files that are not known.
func (s *segments) clear() error {
	names, err := s.disk.List(s.dir)
	for _, name := range names {
		digits, ours := strings.CutPrefix(name, segmentPrefix)
		id, bad := strconv.ParseUint(digits, 10, 32)
		if !ours || bad != nil || s.all[uint32(id)] != nil {
			continue
		}
		err = errors.Join(err, s.disk.Remove(filepath.Join(s.dir, name)))
	}
	return err
}

func (s *segments) close() error {
	err := s.flush()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	for _, seg := range slices.AppendSeq(slices.Clone(s.dead), maps.Values(s.all)) {
		if seg.src != nil {
			err = errors.Join(err, seg.src.Close())
		}
	}
	return err
}
