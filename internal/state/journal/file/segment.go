package file

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
)

// A segment is one file of the journal.
type segment struct {
	start  journal.Position
	frames int64 // bytes of its frames; before the last segment is repaired, all bytes after the first line
}

func (s segment) end() journal.Position { return s.start + journal.Position(max(s.frames, 0)) }

// header returns the first line of the segment that starts at start.
func header(start journal.Position) string { return fmt.Sprintf("%s%016x\n", version, uint64(start)) }

// Replay calls f with every batch after from.
func (j *Journal) Replay(from journal.Position, f func([]byte, journal.Position) error) error {
	if from < j.segments[0].start {
		return fmt.Errorf("replay journal %s from %x: %w, only to %x", j.dir, uint64(from), journal.ErrDropped,
			uint64(j.segments[0].start))
	}
	if from > j.End() {
		return fmt.Errorf("replay journal %s from %x: %w: it ends at %x", j.dir, uint64(from), ErrDamaged, uint64(j.End()))
	}
	for _, s := range j.segments {
		if s.end() <= from {
			continue
		}
		if err := j.replay(s, from, f); err != nil {
			return fmt.Errorf("replay journal %s: %w", j.dir, err)
		}
	}
	return nil
}

// replay calls f with the batches of a segment after from. All frames must be valid.
func (j *Journal) replay(s segment, from journal.Position, f func([]byte, journal.Position) error) error {
	got, err := j.scan(s, func(batch []byte, end journal.Position) error {
		if begin := end - frameLen - journal.Position(len(batch)); begin < from {
			if end > from {
				return fmt.Errorf("%w: position %x is inside a batch", ErrDamaged, uint64(from))
			}
			return nil
		}
		return f(batch, end)
	})
	if err == nil && got != s.frames {
		err = fmt.Errorf("%w at byte %d of the segment at %x: later batches cannot be trusted", ErrDamaged,
			int64(headLen)+got, uint64(s.start))
	}
	return err
}

// errTornHead reports a segment whose first line was not durable when the machine crashed.
var errTornHead = errors.New("torn first line")

// scan reads a segment's frames up to the first invalid one, and returns the length of the valid frames.
func (j *Journal) scan(s segment, f func([]byte, journal.Position) error) (whole int64, err error) {
	rc, err := j.disk.Open(j.name(s.start))
	if err != nil {
		return 0, err
	}
	defer rc.Close()
	r := bufio.NewReaderSize(rc, 1<<20)
	if err := readHead(r, header(s.start), s.frames == 0); err != nil {
		return 0, err
	}
	for {
		batch, err := j.next(r)
		if errors.Is(err, errBadFrame) || errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		next := whole + frameLen + int64(len(batch))
		if err := f(batch, s.start+journal.Position(next)); err != nil {
			return whole, err
		}
		whole = next
	}
}

// readHead reads a segment's first line. alone means that nothing follows it.
func readHead(r io.Reader, want string, alone bool) error {
	head := make([]byte, len(want))
	n, err := io.ReadFull(r, head)
	switch {
	case err == nil && string(head) == want:
		return nil
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errTornHead
	case err == nil && strings.Trim(string(head), "\x00") == "", err == nil && alone && hasHoles(head, want):
		return errTornHead
	case err != nil:
		return err
	case strings.HasPrefix(string(head[:n]), family):
		return fmt.Errorf("%w: its first line is %q, not %q", ErrVersion, head[:n], want)
	}
	return fmt.Errorf("%w: it does not begin with %q", ErrVersion, want)
}

// hasHoles reports whether a line equals want except for zero bytes, which were never written.
func hasHoles(line []byte, want string) bool {
	for i, c := range line {
		if c != want[i] && c != 0 {
			return false
		}
	}
	return true
}

var errBadFrame = errors.New("bad frame")

// next reads one frame. It returns io.EOF at the end of the file, and errBadFrame for an incomplete or damaged frame.
func (j *Journal) next(r io.Reader) ([]byte, error) {
	var head [frameLen]byte
	switch n, err := io.ReadFull(r, head[:]); {
	case n == 0 && errors.Is(err, io.EOF):
		return nil, io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errBadFrame
	case err != nil:
		return nil, err
	}
	n, ok := frameSize(head[:])
	if !ok {
		return nil, errBadFrame
	}
	batch, err := vfs.ReadN(r, j.frame[:0], n)
	switch j.frame = batch; {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errBadFrame
	case err != nil:
		return nil, err
	}
	if checksum(batch) != binary.LittleEndian.Uint32(head[8:]) {
		return nil, errBadFrame
	}
	return batch, nil
}

// frameSize reads the length of a frame's batch.
func frameSize(head []byte) (n int, ok bool) {
	if len(head) < frameLen {
		return 0, false
	}
	n = int(binary.LittleEndian.Uint32(head))
	return n, n > 0 && n <= maxBatch && checksum(head[:4]) == binary.LittleEndian.Uint32(head[4:])
}
