package robots

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"kumo/internal/base/vfs"
)

// segments store responses on disk in the order of arrival: in files, so that the next run can use them, or in a
// temporary file. A file consists of a line with the format and of frames. When a segment is full, the next one begins;
// it is removed when its last response has expired. So the disk holds little more than the responses of one lifetime.
// Files are not synced: a crash loses responses, which are then fetched again.
type segments struct {
	disk    vfs.FS       // nil: scratch is used
	dir     string       // of the files, if disk is set
	scratch *vfs.Scratch // nil: files are used
	max     uint32       // bytes of a segment

	mu   sync.RWMutex // guards the fields below; also held while a frame is read or written
	all  map[uint32]*segment
	last *segment // the segment being written; nil before the first
	next uint32
	buf  []byte
}

// A segment is a file, or a part of the temporary file.
type segment struct {
	id      uint32
	size    uint32
	expires uint32 // the latest expiry of its responses
	in      io.ReaderAt
	out     io.Writer
	close   func() error
}

const (
	segmentMagic  = "kumo robots 2\n"
	segmentSuffix = ".robots"
	segmentSize   = 64 << 20
)

var errNoSegment = errors.New("no such segment")

func newScratchSegments() *segments {
	return &segments{scratch: vfs.NewScratch("", nil, 0), max: segmentSize, all: map[uint32]*segment{}}
}

func newFileSegments(disk vfs.FS, dir string) *segments {
	return &segments{disk: disk, dir: dir, max: segmentSize, all: map[uint32]*segment{}}
}

// isPersistent reports whether responses outlive the process.
func (s *segments) isPersistent() bool { return s.scratch == nil }

func (s *segments) name(id uint32) string {
	return filepath.Join(s.dir, fmt.Sprintf("%08d%s", id, segmentSuffix))
}

// open opens the files of earlier runs and calls f with each complete frame and its position, in order. It removes
// files of another format.
func (s *segments) open(f func(segment, at uint32, answer *frame)) error {
	if err := s.disk.MkdirAll(s.dir); err != nil {
		return err
	}
	names, err := s.disk.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		id, err := strconv.ParseUint(strings.TrimSuffix(name, segmentSuffix), 10, 32)
		if err != nil || s.name(uint32(id)) != filepath.Join(s.dir, name) {
			if err := s.disk.Remove(filepath.Join(s.dir, name)); err != nil {
				return err
			}
			continue
		}
		seg := &segment{id: uint32(id)}
		if err := s.load(seg, f); err != nil {
			return err
		}
		s.next = seg.id
		if seg.size == 0 { // it has no complete frame
			if err := s.remove(seg); err != nil {
				return err
			}
			continue
		}
		if err := s.openFile(seg); err != nil {
			return err
		}
		s.all[seg.id], s.last = seg, seg
	}
	return nil
}

// load reads a file up to the first incomplete frame.
func (s *segments) load(seg *segment, f func(segment, at uint32, answer *frame)) error {
	src, err := s.disk.Open(s.name(seg.id))
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }() // opened for reading only
	in := bufio.NewReaderSize(src, 256<<10)
	head := make([]byte, len(segmentMagic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != segmentMagic {
		return nil //nolint:nilerr // torn, or another format
	}
	seg.size = uint32(len(segmentMagic))
	var answer frame
	var body []byte
	for head = head[:frameHead]; ; {
		if _, err := io.ReadFull(in, head); err != nil {
			return nil //nolint:nilerr // the end, or torn
		}
		n, err := bodyLen(head)
		if err != nil {
			return nil //nolint:nilerr // torn
		}
		if cap(body) < n {
			body = make([]byte, n)
		}
		if _, err := io.ReadFull(in, body[:n]); err != nil || answer.parse(head, body[:n]) != nil {
			return nil //nolint:nilerr // torn
		}
		f(seg.id, seg.size, &answer)
		seg.size += uint32(frameHead + n)
		seg.expires = max(seg.expires, answer.expires)
	}
}

// openFile opens a segment's file for appending, and truncates it after its last complete frame.
func (s *segments) openFile(seg *segment) error {
	name := s.name(seg.id)
	if err := vfs.TruncateTo(s.disk, name, int64(seg.size)); err != nil {
		return err
	}
	out, err := s.disk.Append(name)
	if err != nil {
		return err
	}
	in, err := s.disk.OpenAt(name)
	if err != nil {
		return errors.Join(err, out.Close())
	}
	seg.in, seg.out = in, out
	seg.close = func() error { return errors.Join(in.Close(), out.Close()) }
	return nil
}

// begin begins the next segment. The caller must hold mu.
func (s *segments) begin() error {
	s.next++
	seg := &segment{id: s.next}
	if s.scratch != nil {
		stretch := s.scratch.New()
		seg.in, seg.out, seg.close = stretch, stretch, func() error { stretch.Free(); return nil }
	} else if err := s.create(seg); err != nil {
		return err
	}
	s.all[seg.id], s.last = seg, seg
	return nil
}

// create creates a segment's file.
func (s *segments) create(seg *segment) error {
	if err := s.openFile(seg); err != nil {
		return err
	}
	seg.size = uint32(len(segmentMagic))
	if _, err := seg.out.Write([]byte(segmentMagic)); err != nil {
		return errors.Join(err, s.remove(seg))
	}
	return nil
}

// write appends a frame and returns its position. After an error the next frame begins a new segment, since a frame
// after a torn one could not be read.
func (s *segments) write(f *frame, now uint32) (segment, at uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = f.append(s.buf[:0])
	if len(s.buf) > maxFrame {
		return 0, 0, errFrame
	}
	if s.last == nil || s.last.out == nil || s.last.size > 0 && s.last.size+uint32(len(s.buf)) > s.max {
		if err := s.begin(); err != nil {
			return 0, 0, err
		}
		s.removeExpiredLocked(now)
	}
	seg := s.last
	if _, err := seg.out.Write(s.buf); err != nil {
		seg.out = nil
		return 0, 0, err
	}
	at = seg.size
	seg.size += uint32(len(s.buf))
	seg.expires = max(seg.expires, f.expires)
	return seg.id, at, nil
}

func (s *segments) read(id, at uint32) (*frame, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	seg := s.all[id]
	if seg == nil {
		return nil, errNoSegment
	}
	head := make([]byte, frameHead+1<<10) // most frames are shorter
	n, err := seg.in.ReadAt(head, int64(at))
	if n < frameHead {
		return nil, errors.Join(errFrame, err)
	}
	size, err := bodyLen(head)
	if err != nil {
		return nil, err
	}
	body := head[frameHead:n]
	if size > len(body) {
		body = append(make([]byte, 0, size), body...)[:size]
		if _, err := seg.in.ReadAt(body[n-frameHead:], int64(at)+int64(n)); err != nil {
			return nil, err
		}
	}
	f := &frame{}
	return f, f.parse(head, body[:size])
}

// removeExpired removes the segments whose responses have all expired.
func (s *segments) removeExpired(now uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeExpiredLocked(now)
}

func (s *segments) removeExpiredLocked(now uint32) {
	for _, seg := range s.all {
		if seg != s.last && seg.expires <= now {
			_ = s.remove(seg) // the next run removes a remaining file
		}
	}
}

func (s *segments) remove(seg *segment) error {
	delete(s.all, seg.id)
	if s.last == seg {
		s.last = nil
	}
	var err error
	if seg.close != nil {
		err = seg.close()
	}
	if s.scratch == nil {
		err = errors.Join(err, s.disk.Remove(s.name(seg.id)))
	}
	return err
}

func (s *segments) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, seg := range s.all {
		if seg.close != nil {
			err = errors.Join(err, seg.close())
		}
	}
	clear(s.all)
	s.last = nil
	if s.scratch != nil {
		err = errors.Join(err, s.scratch.Close())
	}
	return err
}
