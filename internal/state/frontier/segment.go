package frontier

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/base/vfs"
)

const (
	segmentPrefix = "queue-"
	frameLen      = 8
	writeBuffer   = 256 << 10
	readAhead     = 1 << 10 // most blocks are shorter
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A segment is a file of frames: blocks, and chunks of buckets. A frame is its length and the CRC-32C of its body, four
// bytes each, little-endian, then the body, whose first byte is its kind. A segment only grows, until it is full.
type segment struct {
	id      uint32
	size    int64
	live    int64        // bytes of frames that are in use
	era     int          // of checkpoints, when it was made
	died    int          // the era when its last frame went
	stuck   bool         // compaction did not empty it
	src     vfs.ReaderAt // nil until it is read
	readers int          // for whom it stays
}

// segments are the files below a folder that hold frames. The frontier's lock guards all but what is writeBehind's for
// who holds the disk.
type segments struct {
	disk vfs.FS
	dir  string
	full int64 // bytes at which a segment is
	era  int   // counts checkpoints

	all      map[uint32]*segment
	dead     []*segment // without frames in use, but named by a checkpoint, or read
	doomed   []*segment // to be removed by who holds the disk
	surplus  []io.Closer
	last     uint32 // segment made
	current  *segment
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
	behind     writeBehind
	wants      []want         // of the one who has the lock
	resident   map[loc][]byte // likewise
	spare      [][]byte       // to be read into
}

func newSegments(disk vfs.FS, dir string, full int64) *segments {
	return &segments{disk: disk, dir: dir, full: full, era: 1, all: map[uint32]*segment{}, unsynced: map[uint32]bool{},
		resident: map[loc][]byte{}}
}

func (s *segments) name(id uint32) string {
	return filepath.Join(s.dir, segmentPrefix+strconv.FormatUint(uint64(id), 10))
}

// append adds a frame and returns where it is and how long. It is in memory until who holds the disk writes it.
func (s *segments) append(encode func(*writer)) (loc, int64) {
	s.enc.b = append(s.enc.b[:0], make([]byte, frameLen)...)
	encode(&s.enc)
	frame := s.enc.b
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameLen))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[frameLen:], castagnoli))
	s.makeRoom(len(frame))
	at, n := newLoc(s.current.id, s.current.size), int64(len(frame))
	s.behind.append(s.current, frame, int(min(s.full, writeBuffer)))
	s.current.size += n
	s.size += n
	s.written += n
	s.count(at, n)
	return at, n
}

// makeRoom sees to it that a frame fits into the current segment.
func (s *segments) makeRoom(n int) {
	if s.current != nil && s.current.size > 0 && s.current.size+int64(n) > s.full {
		done := s.current
		s.behind.seal()
		s.current = nil
		s.retire(done)
	}
	if s.current == nil {
		s.last++
		s.current = &segment{id: s.last, era: s.era}
		s.all[s.last] = s.current
		s.unsynced[s.last] = true
	}
}

// frame returns a frame's body, which holds until the lock is given up. The hint is how long the frame may be. What is
// not in memory is wanted from then on: see paged.
func (s *segments) frame(at loc, hint int64) ([]byte, error) {
	if body := s.behind.frame(at); body != nil {
		return body, nil
	}
	if body := s.resident[at]; body != nil {
		return body, nil
	}
	s.wants = append(s.wants, want{at: at, hint: hint})
	return nil, errNotResident
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

// bury dooms dead segments that no checkpoint names and nobody reads.
func (s *segments) bury() {
	if len(s.dead) == 0 || s.broken != nil || s.pins > 0 {
		return // nobody knows which checkpoint holds, or what is read
	}
	s.dead = slices.DeleteFunc(s.dead, func(seg *segment) bool {
		if seg.readers > 0 || seg.namedBy(s.kept) || s.cutting && seg.namedBy(s.era) {
			return false
		}
		delete(s.unsynced, seg.id)
		s.doomed = append(s.doomed, seg)
		return true
	})
}

// pass sees to it that no segment gets the number of a file that is there: a copy of the folder that somebody makes
// meanwhile may have a file from before, and a checkpoint from after.
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
