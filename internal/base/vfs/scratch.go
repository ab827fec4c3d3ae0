package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
)

// A Scratch is a temporary file for data that does not fit into memory and is not needed after the process ends. All
// spools share it, so it takes one file descriptor. The file is created when first needed. Where the system allows it,
// it has no name.
type Scratch struct {
	dir      string
	diskFree func() (uint64, error) // returns the free space of the disk; nil: not checked
	minFree  uint64                 // bytes that must stay free on the disk
	open     func(dir string) (scratchFile, error)

	mu   sync.Mutex // guards the fields below
	file scratchFile
	free []int64 // unused blocks before next
	next int64
	used int64
}

// A scratchFile is the part of os.File that Scratch uses.
type scratchFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Name() string
}

const (
	scratchBlock  = 128 << 10
	scratchGrowth = 64 // blocks between two checks of the disk's free space
)

// ErrNoRoom reports that the disk has less free space than a Scratch must leave.
var ErrNoRoom = errors.New("the disk is nearly full")

// NewScratch returns a Scratch in a folder; "" is the system's folder for temporary files. The file grows only while
// room reports more than least free bytes; a nil room disables the check. The caller closes the Scratch when no spool
// is in use.
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

// Close closes and removes the file.
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

// Used returns the bytes of the file that are in use.
func (s *Scratch) Used() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used * scratchBlock
}

// allocBlock returns an unused block and the file.
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
			want = scratchBlock // any free space is enough; a full disk fails the write
		}
		if left, err := s.diskFree(); err != nil || left < want {
			return 0, nil, errors.Join(ErrNoRoom, err)
		}
	}
	s.next++
	s.used++
	return s.next - 1, s.file, nil
}

// freeBlocks frees blocks. When none is in use, it truncates the file.
func (s *Scratch) freeBlocks(blocks []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, blocks...)
	if s.used -= int64(len(blocks)); s.used == 0 && s.next > 0 && s.file != nil {
		if err := s.file.Truncate(0); err == nil { // on error, the blocks are reused as they are
			s.free, s.next = s.free[:0], 0
		}
	}
}

// A Spool is a byte sequence in a Scratch. It must be written by one goroutine at a time and not be read during writes;
// it may be read by several goroutines.
type Spool struct {
	scratch *Scratch
	file    scratchFile
	blocks  []int64
	length  int64
}

// New returns an empty spool.
func (s *Scratch) New() *Spool { return &Spool{scratch: s} }

// Len returns the number of bytes written.
func (t *Spool) Len() int64 { return t.length }

// Write appends to the spool. If the disk has no space, the error is ErrNoRoom, or IsFull returns true for it. Then the
// first n bytes of p are written, and the rest can be written later.
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

// ReadAt implements io.ReaderAt.
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

// Free frees the blocks of the spool, which is empty afterwards.
func (t *Spool) Free() {
	if len(t.blocks) > 0 {
		t.scratch.freeBlocks(t.blocks)
	}
	t.blocks, t.length = nil, 0
}
