package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// A Scratch is a file for what does not fit into memory for a while, and that nobody needs after the process. Many
// stretches share it, so that it takes one file descriptor however many there are. It is made when it is first needed,
// and has no name where the system lets an open file be removed.
type Scratch struct {
	dir      string
	diskFree func() (uint64, error) // on the disk; nil: not asked
	minFree  uint64                 // that the disk must have left
	open     func(dir string) (scratchFile, error)

	mu   sync.Mutex // guards what follows
	file scratchFile
	free []int64 // blocks before next that nobody has
	next int64
	used int64
}

// A scratchFile is what Scratch needs of an os.File.
type scratchFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Name() string
}

const (
	scratchBlock  = 128 << 10
	scratchGrowth = 64 // blocks by which the file grows between two looks at the disk's room
)

// ErrNoRoom says that the disk has less room left than a Scratch must leave.
var ErrNoRoom = errors.New("the disk is nearly full")

// NewScratch returns a Scratch in a folder; "" is the system's for temporary files. The file grows only while room says
// that the disk has more than least bytes left; without room it is not asked. The caller closes it when no stretch is
// in use.
func NewScratch(dir string, room func() (uint64, error), least uint64) *Scratch {
	return &Scratch{dir: dir, diskFree: room, minFree: least, open: openScratch}
}

func openScratch(dir string) (scratchFile, error) {
	f, err := os.CreateTemp(dir, "scratch-*")
	if err == nil && runtime.GOOS != "windows" {
		err = os.Remove(f.Name())
	}
	return f, err
}

// Close gives the disk its room back.
func (s *Scratch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	if runtime.GOOS == "windows" {
		err = errors.Join(err, os.Remove(s.file.Name()))
	}
	s.file = nil
	return err
}

// Used is how many bytes of the file are in use.
func (s *Scratch) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used * scratchBlock
}

// allocBlock returns a block that nobody has.
func (s *Scratch) allocBlock() (int64, scratchFile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		f, err := s.open(s.dir)
		if err != nil {
			return 0, nil, fmt.Errorf("make a temporary file: %w", err)
		}
		s.file = f
	}
	if last := len(s.free) - 1; last >= 0 {
		block := s.free[last]
		s.free = s.free[:last]
		s.used++
		return block, s.file, nil
	}
	if s.diskFree != nil && s.next%scratchGrowth == 0 {
		want := s.minFree + scratchGrowth*scratchBlock
		if s.minFree == 0 {
			want = scratchBlock // whatever it has: that it is full is seen then
		}
		if left, err := s.diskFree(); err != nil || left < want {
			return 0, nil, errors.Join(ErrNoRoom, err)
		}
	}
	s.next++
	s.used++
	return s.next - 1, s.file, nil
}

// freeBlocks takes blocks back. When nobody has any the file is emptied.
func (s *Scratch) freeBlocks(blocks []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, blocks...)
	if s.used -= int64(len(blocks)); s.used == 0 && s.next > 0 && s.file != nil {
		if err := s.file.Truncate(0); err == nil { // otherwise the blocks are used again as they are
			s.free, s.next = s.free[:0], 0
		}
	}
}

// A Stretch is bytes in a Scratch. One goroutine at a time writes to it; then several may read.
type Spool struct {
	scratch *Scratch
	file    scratchFile
	blocks  []int64
	length  int64
}

// New returns an empty stretch.
func (s *Scratch) New() *Spool { return &Spool{scratch: s} }

// Len is the number of bytes written.
func (t *Spool) Len() int64 { return t.length }

// Write appends to the stretch. The error is ErrNoRoom, or of those that IsFull knows, where the disk has no room;
// after it the stretch has the first n bytes of p, and the rest can be written later.
func (t *Spool) Write(p []byte) (n int, err error) {
	for n < len(p) {
		within := t.length % scratchBlock
		if within == 0 && int64(len(t.blocks))*scratchBlock == t.length {
			block, file, err := t.scratch.allocBlock()
			if err != nil {
				return n, err
			}
			t.blocks, t.file = append(t.blocks, block), file
		}
		part := p[n:min(len(p), n+int(scratchBlock-within))]
		m, err := t.file.WriteAt(part, t.blocks[t.length/scratchBlock]*scratchBlock+within)
		t.length += int64(m)
		n += m
		if err != nil {
			return n, fmt.Errorf("write a temporary file: %w", err)
		}
	}
	return n, nil
}

// ReadAt reads from the stretch as an io.ReaderAt does.
func (t *Spool) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && off < t.length {
		within := off % scratchBlock
		part := p[n:min(int64(len(p)), int64(n)+min(scratchBlock-within, t.length-off))]
		m, err := t.file.ReadAt(part, t.blocks[off/scratchBlock]*scratchBlock+within)
		n += m
		off += int64(m)
		if m < len(part) {
			return n, fmt.Errorf("read a temporary file: %w", err)
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Free gives the stretch's room back. It is empty then.
func (t *Spool) Free() {
	if len(t.blocks) > 0 {
		t.scratch.freeBlocks(t.blocks)
	}
	t.blocks, t.length = nil, 0
}
