// Package file is a journal in one file.
//
// The file begins with the line "kumo journal 1". Each batch follows as a frame: its length and its CRC-32C, both four bytes,
// little-endian, then its bytes. A process that dies while it writes leaves a torn frame at the end, and a machine that dies may
// leave zeros there; Open cuts both off. A bad frame anywhere else means damage, and Open refuses the file.
package file

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"kumo/internal/journal"
	"kumo/internal/vfs"
)

const (
	magic    = "kumo journal 1\n"
	family   = "kumo journal "
	frameLen = 8
	maxBatch = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	// ErrVersion is a journal written by another version of kumo, or no journal at all.
	ErrVersion = errors.New("not a journal that this version of kumo reads")
	// ErrDamaged is a bad frame that is not the last one.
	ErrDamaged = errors.New("the journal is damaged")
)

var _ journal.Journal = (*Journal)(nil)

// A Journal is a journal in one file.
type Journal struct {
	disk  vfs.FS
	name  string
	file  vfs.File
	size  int64 // of the file's whole frames
	frame []byte
}

// Open opens the journal at name, makes it when there is none, and cuts a torn end off.
func Open(disk vfs.FS, name string) (*Journal, error) {
	j := &Journal{disk: disk, name: name}
	if err := j.check(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
	}
	if err := vfs.CutBack(disk, name, j.size); err != nil {
		return nil, err
	}
	f, err := disk.Append(name)
	if err != nil {
		return nil, err
	}
	j.file = f
	if j.size == 0 {
		return j, j.write([]byte(magic))
	}
	return j, nil
}

// check finds where the last whole frame ends.
func (j *Journal) check() error {
	_, err := j.disk.Size(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return j.scan(func([]byte) error { return nil })
}

// Replay calls f with every batch.
func (j *Journal) Replay(f func(batch []byte) error) error {
	if err := j.scan(f); err != nil {
		return fmt.Errorf("replay journal %s: %w", j.name, err)
	}
	return nil
}

// scan reads frames up to the first that is not whole, sets size to where that begins, and fails unless it is the torn end.
func (j *Journal) scan(f func([]byte) error) error {
	rc, err := j.disk.Open(j.name)
	if err != nil {
		return err
	}
	defer rc.Close()
	r := bufio.NewReaderSize(rc, 1<<20)
	if torn, err := readMagic(r); torn || err != nil {
		j.size = 0
		return err
	}
	j.size = int64(len(magic))
	for {
		batch, err := j.next(r)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errBadFrame):
			return j.tornEnd(r)
		case err != nil:
			return err
		}
		if err := f(batch); err != nil {
			return err
		}
		j.size += frameLen + int64(len(batch))
	}
}

// readMagic reads the first line. A file that ends within it was torn when it was made.
func readMagic(r io.Reader) (torn bool, err error) {
	head := make([]byte, len(magic))
	n, err := io.ReadFull(r, head)
	switch {
	case err == nil && string(head) == magic:
		return false, nil
	case err != nil && string(head[:n]) == magic[:n]:
		return true, nil
	case n >= len(family) && string(head[:len(family)]) == family:
		return false, fmt.Errorf("%w: its first line is %q, not %q", ErrVersion, head[:n], magic)
	}
	return false, fmt.Errorf("%w: it does not begin with %q", ErrVersion, magic)
}

var errBadFrame = errors.New("bad frame")

// next reads one frame: io.EOF at the end and within a frame, errBadFrame when its bytes are not what was written.
func (j *Journal) next(r io.Reader) ([]byte, error) {
	var head [frameLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, io.EOF
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == 0 || n > maxBatch {
		return nil, errBadFrame
	}
	if cap(j.frame) < int(n) {
		j.frame = make([]byte, n)
	}
	batch := j.frame[:n]
	if _, err := io.ReadFull(r, batch); err != nil {
		return nil, io.EOF
	}
	if crc32.Checksum(batch, castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errBadFrame
	}
	return batch, nil
}

// tornEnd accepts a bad frame that nothing, or nothing but zeros, follows.
func (j *Journal) tornEnd(r *bufio.Reader) error {
	for {
		b, err := r.ReadByte()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if b != 0 {
			return fmt.Errorf("%w at byte %d: what follows cannot be trusted", ErrDamaged, j.size)
		}
	}
}

// Append adds one batch and returns when it is durable.
func (j *Journal) Append(batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	if len(batch) > maxBatch {
		return fmt.Errorf("journal %s: a batch of %d bytes is too large", j.name, len(batch))
	}
	j.frame = binary.LittleEndian.AppendUint32(j.frame[:0], uint32(len(batch)))
	j.frame = binary.LittleEndian.AppendUint32(j.frame, crc32.Checksum(batch, castagnoli))
	j.frame = append(j.frame, batch...)
	return j.write(j.frame)
}

func (j *Journal) write(p []byte) error {
	if _, err := j.file.Write(p); err != nil {
		return err
	}
	if err := j.file.Sync(); err != nil {
		return err
	}
	j.size += int64(len(p))
	return nil
}

// Close closes the file.
func (j *Journal) Close() error { return j.file.Close() }
