package frontier

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"path/filepath"
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

// A segment is a file of frames, which are blocks or chunks of buckets. A frame is the length and the CRC-32C of its
// body (4 bytes each, little-endian), then the body. The first byte of the body is its kind. A segment is append-only
// until it is full.
type segment struct {
	id      uint32
	size    int64
	live    int64        // bytes of frames in use
	era     int          // checkpoint era in which it was created
	died    int          // era in which its last frame became unused
	stuck   bool         // compaction could not empty it
	src     vfs.ReaderAt // nil until it is read
	readers int          // reads under way, during which the file stays
}

// segments appends frames and counts the bytes in use in each file. A new frame is in memory (behind) until a
// segmentWriter writes it. The frontier's lock guards it.
type segments struct {
	folder   folder
	full     int64 // size at which a segment is full
	all      map[uint32]*segment
	last     uint32 // number of the last segment created
	current  *segment
	behind   writeBehind
	retained retention

	size, live int64 // of all segments
	written    int64 // since the compactor reset it
	enc        writer
}

func newSegments(disk vfs.FS, dir string, full int64) *segments {
	return &segments{folder: folder{disk, dir}, full: full, all: map[uint32]*segment{},
		retained: retention{era: 1, unsynced: map[uint32]bool{}}}
}

// append adds a frame and returns its location and length.
func (s *segments) append(encode func(*writer)) (loc, int64) {
	s.enc.b = append(s.enc.b[:0], make([]byte, frameLen)...)
	encode(&s.enc)
	frame := s.enc.b
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameLen))
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[frameLen:], castagnoli))
	s.rollOver(len(frame))
	at, n := s.end(), int64(len(frame))
	s.behind.append(s.current, frame, int(min(s.full, writeBuffer)))
	s.current.size += n
	s.size += n
	s.written += n
	s.count(at, n)
	return at, n
}

// rollOver starts a new segment if a frame of n bytes does not fit into the current one.
func (s *segments) rollOver(n int) {
	if s.current != nil && s.current.size > 0 && s.current.size+int64(n) > s.full {
		full := s.current
		s.behind.seal()
		s.current = nil
		s.retire(full)
	}
	if s.current == nil {
		s.last++
		s.current = &segment{id: s.last, era: s.retained.era}
		s.all[s.last] = s.current
		s.retained.unsynced[s.last] = true
	}
}

// end returns a location after all frames.
func (s *segments) end() loc {
	if s.current == nil {
		return newLoc(s.last+1, 0)
	}
	return newLoc(s.current.id, s.current.size)
}

// find returns a segment, also a dead one if a reader has pinned it.
func (s *segments) find(id uint32) *segment {
	if seg := s.all[id]; seg != nil {
		return seg
	}
	return s.retained.pinned(id)
}

// count adds n bytes to the frames in use in a segment; n is negative for a frame that becomes unused.
func (s *segments) count(at loc, n int64) {
	seg := s.all[at.segment()]
	seg.live += n
	s.live += n
	s.retained.count(seg, n)
	s.retire(seg)
}

// release marks frames as unused.
func (s *segments) release(chunks []chunk) {
	for _, c := range chunks {
		s.count(c.at, -c.size)
	}
}

// retire drops a segment without frames in use. Its file stays as long as a checkpoint needs it.
func (s *segments) retire(seg *segment) {
	if seg.live > 0 || seg == s.current || s.all[seg.id] != seg {
		return
	}
	delete(s.all, seg.id)
	s.size -= seg.size
	s.retained.add(seg)
}

// restore adds a segment from a checkpoint.
func (s *segments) restore(seg *segment) {
	s.all[seg.id] = seg
	s.last = max(s.last, seg.id)
	s.size += seg.size
	s.live += seg.live
}

// isWasteful reports whether so much of the files is unused that compaction is worthwhile.
func (s *segments) isWasteful() bool { return s.size > 3*s.live+slackSegments*s.full }

// emptiest returns the segment with the smallest part in use, nil if there is none to compact.
func (s *segments) emptiest() *segment {
	var least *segment
	for _, seg := range s.all {
		if seg == s.current || seg.stuck {
			continue
		}
		if least == nil || seg.live*least.size < least.live*seg.size {
			least = seg
		}
	}
	return least
}

// A folder is the directory of the segments and the checkpoint.
type folder struct {
	disk vfs.FS
	dir  string
}

func (d folder) path(name string) string { return filepath.Join(d.dir, name) }

func (d folder) segment(id uint32) string {
	return d.path(segmentPrefix + strconv.FormatUint(uint64(id), 10))
}

// segments returns the numbers of the segment files in the folder.
func (d folder) segments() (ids []uint32, err error) {
	names, err := d.disk.List(d.dir)
	for _, name := range names {
		if digits, ours := strings.CutPrefix(name, segmentPrefix); ours {
			if id, bad := strconv.ParseUint(digits, 10, 32); bad == nil && strconv.FormatUint(id, 10) == digits {
				ids = append(ids, uint32(id))
			}
		}
	}
	return ids, err
}

// skipNumbers ensures that no new segment gets the number of an existing file. Otherwise a copy of the folder, taken
// while the crawl runs, may combine an older file with a newer checkpoint.
func (s *segments) skipNumbers() error {
	ids, err := s.folder.segments()
	for _, id := range ids {
		s.last = max(s.last, id)
	}
	return err
}

// removeUnknown removes the segment files that no checkpoint names.
func (s *segments) removeUnknown() error {
	ids, err := s.folder.segments()
	for _, id := range ids {
		if s.all[id] == nil {
			err = errors.Join(err, s.folder.disk.Remove(s.folder.segment(id)))
		}
	}
	return err
}
