// Package file is a journal in one file.
//
// The file begins with the line "kumo journal 1". Each batch follows as a frame: its length, the CRC-32C of that, and the CRC-32C of
// the batch, four bytes each, little-endian, then the batch. A process that dies while it writes leaves a torn frame at the
// end, and a machine that dies may leave any part of it unwritten: a bad frame that no good one follows is such an end. Open
// cuts it off and keeps what it cut beside the journal. A bad frame before a good one means damage, and Open refuses the file.
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
	frameLen = 12
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
	if err := j.repair(); err != nil {
		return nil, fmt.Errorf("open journal %s: %w", name, err)
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

// repair finds where the last whole frame ends and cuts off what follows.
func (j *Journal) repair() error {
	size, err := j.disk.Size(j.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := j.scan(func([]byte) error { return nil }); err != nil || j.size == size {
		return err
	}
	if err := j.keepTorn(); err != nil {
		return err
	}
	return vfs.CutBack(j.disk, j.name, j.size)
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
		case errors.Is(err, errBadFrame):
			return j.checkEnd()
		case errors.Is(err, io.EOF):
			return nil
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

// next reads one frame: io.EOF at the end of the file, errBadFrame when its bytes are not, or not all, what was written.
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
	if cap(j.frame) < n {
		j.frame = make([]byte, n)
	}
	batch := j.frame[:n]
	switch _, err := io.ReadFull(r, batch); {
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
	n = int(binary.LittleEndian.Uint32(head))
	return n, n > 0 && n <= maxBatch && checksum(head[:4]) == binary.LittleEndian.Uint32(head[4:])
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// rest reads what follows the last whole frame. It is one batch: each is durable before the next is written.
func (j *Journal) rest() ([]byte, error) {
	rc, err := j.disk.Open(j.name)
	if err != nil {
		return nil, err
	}
	defer rc.Close()
	if _, err := io.CopyN(io.Discard, rc, j.size); err != nil {
		return nil, err
	}
	return io.ReadAll(rc)
}

// checkEnd accepts a bad frame that no good one follows.
func (j *Journal) checkEnd() error {
	rest, err := j.rest()
	if err != nil {
		return err
	}
	for i := 1; i+frameLen <= len(rest); i++ {
		n, ok := frameSize(rest[i:])
		if body := rest[i+frameLen:]; ok && n <= len(body) && checksum(body[:n]) == binary.LittleEndian.Uint32(rest[i+8:]) {
			return fmt.Errorf("%w at byte %d of %d: batches that follow cannot be trusted", ErrDamaged, j.size, j.size+int64(len(rest)))
		}
	}
	return nil
}

// keepTorn keeps what is cut off, should a person want to look at it.
func (j *Journal) keepTorn() error {
	rest, err := j.rest()
	if err != nil {
		return err
	}
	if err := vfs.CutBack(j.disk, j.name+tornSuffix, 0); err != nil {
		return err
	}
	f, err := j.disk.Append(j.name + tornSuffix)
	if err != nil {
		return err
	}
	_, err = f.Write(rest)
	return errors.Join(err, f.Close())
}

const tornSuffix = ".torn"

// Append adds one batch and returns when it is durable.
func (j *Journal) Append(batch []byte) error {
	if len(batch) == 0 {
		return nil
	}
	if len(batch) > maxBatch {
		return fmt.Errorf("journal %s: a batch of %d bytes is too large", j.name, len(batch))
	}
	j.frame = binary.LittleEndian.AppendUint32(j.frame[:0], uint32(len(batch)))
	j.frame = binary.LittleEndian.AppendUint32(j.frame, checksum(j.frame))
	j.frame = binary.LittleEndian.AppendUint32(j.frame, checksum(batch))
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
