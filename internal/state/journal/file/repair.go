package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
)

const tornSuffix = ".torn"

// repair truncates the last segment after its last valid frame. It reports whether the segment has a complete first
// line. A segment without one has no batches.
func (j *Journal) repair(last *segment) (whole bool, err error) {
	frames, err := j.scan(*last, func([]byte, journal.Position) error { return nil })
	if errors.Is(err, errTornHead) {
		return false, nil
	}
	if err != nil || frames == last.frames {
		return true, err
	}
	last.frames = frames
	rest, err := j.rest(*last)
	if err != nil {
		return true, err
	}
	if hasFrame(rest) {
		return true, fmt.Errorf("%w at byte %d of the segment at %x: later batches cannot be trusted",
			ErrDamaged, int64(headLen)+frames, uint64(last.start))
	}
	name := j.name(last.start)
	if err := j.saveTorn(name+tornSuffix, rest); err != nil {
		return true, err
	}
	return true, vfs.TruncateTo(j.disk, name, int64(headLen)+frames)
}

// rest reads the bytes after the last valid frame. They are at most one batch, because each batch is durable before the
// next is written.
func (j *Journal) rest(s segment) ([]byte, error) {
	rc, err := j.disk.Open(j.name(s.start))
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if _, err := io.CopyN(io.Discard, rc, int64(headLen)+s.frames); err != nil {
		return nil, err
	}
	rest, err := io.ReadAll(io.LimitReader(rc, frameLen+maxBatch+1))
	if err == nil && len(rest) > frameLen+maxBatch {
		err = fmt.Errorf("%w: more than one batch follows the last valid one of the segment at %x", ErrDamaged,
			uint64(s.start))
	}
	return rest, err
}

// hasFrame reports whether a valid frame follows the bad one at the start of rest. If the length in the bad frame is
// valid, the next frame must start after it: anything inside that looks like a frame is content of the batch, which a
// web server may have chosen.
func hasFrame(rest []byte) bool {
	if n, ok := frameSize(rest); ok {
		return frameLen+n <= len(rest) && isFrame(rest[frameLen+n:])
	}
	for i := 1; i < len(rest); i++ {
		if isFrame(rest[i:]) {
			return true
		}
	}
	return false
}

// isFrame reports whether b begins with a valid frame.
func isFrame(b []byte) bool {
	n, ok := frameSize(b)
	return ok && frameLen+n <= len(b) && checksum(b[frameLen:][:n]) == binary.LittleEndian.Uint32(b[8:])
}

// saveTorn saves the truncated bytes, so that they can be inspected.
func (j *Journal) saveTorn(name string, rest []byte) error {
	if err := vfs.TruncateTo(j.disk, name, 0); err != nil {
		return err
	}
	f, err := j.disk.Append(name)
	if err != nil {
		return err
	}
	_, err = f.Write(rest)
	return errors.Join(err, f.Close())
}
