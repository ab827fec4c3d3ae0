// Package file implements a journal in a folder of segment files.
//
// A segment's name is the position of its beginning, in 16 hexadecimal digits. Its first line contains the format's
// version and this position again. Each batch follows as a frame: its length, the CRC-32C of the length, and the
// CRC-32C of the batch, four bytes each, little-endian, then the batch. A position counts the bytes of all frames,
// including those of dropped segments.
//
// A process that dies during a write leaves a torn frame at the end of the last segment. A machine that dies may leave
// any part of it unwritten. So a bad frame that no good frame follows marks such an end. Open truncates the segment
// there, and stores the removed bytes beside it. Any other damage is an error: a bad frame before a good one, or a
// segment that does not begin at the end of the one before it.
package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
)

const (
	family   = "kumo journal "
	version  = family + "2 "
	headLen  = len(version) + 16 + 1
	frameLen = 12
	maxBatch = 1 << 30
	maxKept  = 4 << 20 // of a reused buffer
	suffix   = ".log"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	// ErrVersion reports a journal of another version of kumo, or a file that is no journal.
	ErrVersion = errors.New("not a journal of a version that this kumo reads")
	// ErrDamaged reports a journal that is damaged, or lacks batches between others.
	ErrDamaged = errors.New("the journal is damaged")
)

var _ journal.Journal = (*Journal)(nil)

// Config configures a journal.
type Config struct {
	Segment int64 // size at which the next segment starts; 64 MiB
}

// A Journal is a journal in a folder.
type Journal struct {
	disk     vfs.FS
	dir      string
	max      int64
	segments []segment // oldest first; the last one is appended to
	file     vfs.File
	frame    []byte
}

// Open opens the journal in dir, creates it if needed, and truncates a torn end.
func Open(disk vfs.FS, dir string, cfg Config) (*Journal, error) {
	j := &Journal{disk: disk, dir: dir, max: cfg.Segment}
	if j.max <= 0 {
		j.max = 64 << 20
	}
	if err := j.open(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", dir, err)
	}
	return j, nil
}

func (j *Journal) open() error {
	if err := j.rejectOldFormat(); err != nil {
		return err
	}
	if err := j.disk.MkdirAll(j.dir); err != nil {
		return err
	}
	if err := j.list(); err != nil {
		return err
	}
	if len(j.segments) == 0 {
		return j.beginSegment(0)
	}
	last := &j.segments[len(j.segments)-1]
	whole, err := j.repair(last)
	if err != nil {
		return err
	}
	if !whole {
		start := last.start
		j.segments = j.segments[:len(j.segments)-1]
		return j.beginSegment(start)
	}
	j.file, err = j.disk.Append(j.name(last.start))
	return err
}

// rejectOldFormat returns an error if an older kumo left a journal in one file.
func (j *Journal) rejectOldFormat() error {
	rc, err := j.disk.Open(j.dir)
	if err != nil {
		return nil //nolint:nilerr // there is nothing yet
	}
	defer rc.Close()
	head := make([]byte, len(family)+1)
	if n, err := io.ReadFull(rc, head); err == nil || n > 0 {
		return fmt.Errorf("%w: it is a single file that begins with %q", ErrVersion, head[:n])
	}
	return nil
}

// list finds the segments. Each must start where the previous one ends.
func (j *Journal) list() error {
	names, err := j.disk.List(j.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		digits, ok := strings.CutSuffix(name, suffix)
		start, err := strconv.ParseUint(digits, 16, 64)
		if !ok || len(digits) != 16 || err != nil {
			continue
		}
		size, err := j.disk.Size(filepath.Join(j.dir, name))
		if err != nil {
			return err
		}
		j.segments = append(j.segments, segment{start: journal.Position(start), frames: size - int64(headLen)})
	}
	slices.SortFunc(j.segments, func(a, b segment) int { return strings.Compare(j.name(a.start), j.name(b.start)) })
	for i := 1; i < len(j.segments); i++ {
		if before, s := j.segments[i-1], j.segments[i]; before.end() != s.start {
			return fmt.Errorf("%w: the segment at %x ends at %x, but the next one starts at %x", ErrDamaged, before.start,
				before.end(), s.start)
		}
	}
	return nil
}

func (j *Journal) name(start journal.Position) string {
	return filepath.Join(j.dir, fmt.Sprintf("%016x%s", uint64(start), suffix))
}

// beginSegment starts a segment.
func (j *Journal) beginSegment(start journal.Position) error {
	if err := vfs.TruncateTo(j.disk, j.name(start), 0); err != nil { // remove what a crash left of its first line
		return err
	}
	f, err := j.disk.Append(j.name(start))
	if err != nil {
		return err
	}
	if err := write(f, []byte(header(start))); err != nil {
		return errors.Join(err, f.Close())
	}
	if j.file != nil {
		if err := j.file.Close(); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	j.file = f
	j.segments = append(j.segments, segment{start: start})
	return nil
}

// Append appends one batch and returns when it is durable.
func (j *Journal) Append(batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	if len(batch) > maxBatch {
		return fmt.Errorf("journal %s: a batch of %d bytes exceeds the limit", j.dir, len(batch))
	}
	if last := j.segments[len(j.segments)-1]; last.frames >= j.max {
		if err := j.beginSegment(last.end()); err != nil {
			return err
		}
	}
	j.frame = binary.LittleEndian.AppendUint32(j.frame[:0], uint32(len(batch)))
	j.frame = binary.LittleEndian.AppendUint32(j.frame, checksum(j.frame))
	j.frame = binary.LittleEndian.AppendUint32(j.frame, checksum(batch))
	j.frame = append(j.frame, batch...)
	if err := write(j.file, j.frame); err != nil {
		return err
	}
	j.segments[len(j.segments)-1].frames += int64(len(j.frame))
	if cap(j.frame) > maxKept {
		j.frame = nil
	}
	return nil
}

func write(f vfs.File, p []byte) error {
	if _, err := f.Write(p); err != nil {
		return err
	}
	return f.Sync()
}

// End returns the position after the last batch.
func (j *Journal) End() journal.Position { return j.segments[len(j.segments)-1].end() }

// Start returns the position of the oldest segment, the first from which Replay is possible.
func (j *Journal) Start() journal.Position { return j.segments[0].start }

// Drop removes the segments that end at or before a position, but never the last.
func (j *Journal) Drop(before journal.Position) error {
	for len(j.segments) > 1 && j.segments[0].end() <= before {
		if err := j.disk.Remove(j.name(j.segments[0].start)); err != nil {
			return fmt.Errorf("drop a segment of journal %s: %w", j.dir, err)
		}
		if err := j.disk.SyncDir(j.dir); err != nil { // before the next removal, so that no gap is possible
			return fmt.Errorf("drop a segment of journal %s: %w", j.dir, err)
		}
		j.segments = j.segments[1:]
	}
	return nil
}

// Close closes the current segment.
func (j *Journal) Close() error { return j.file.Close() }

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
