package vfs

import (
	"io"
	"sync"
	"syscall"
)

// Faulty is a disk that fails on demand: the error-injecting twin of the one below it.
type Faulty struct {
	FS
	mu   sync.Mutex
	room int64 // bytes that can still be written; negative: without limit
}

// NewFaulty puts a disk over below that is healthy until told otherwise.
func NewFaulty(below FS) *Faulty { return &Faulty{FS: below, room: -1} }

// SetRoom lets n more bytes be written; the write that goes beyond is torn there and fails with ENOSPC. A negative n takes
// the limit away.
func (d *Faulty) SetRoom(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// Append opens a file whose writes obey the limit.
func (d *Faulty) Append(name string) (File, error) {
	f, err := d.FS.Append(name)
	if err != nil {
		return nil, err
	}
	return &faultyFile{File: f, disk: d}, nil
}

// take returns how many of n bytes may be written.
func (d *Faulty) take(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room < 0 {
		return n
	}
	got := int(min(int64(n), d.room))
	d.room -= int64(got)
	return got
}

type faultyFile struct {
	File
	disk *Faulty
}

var _ io.Writer = (*faultyFile)(nil)

func (f *faultyFile) Write(p []byte) (int, error) {
	n := f.disk.take(len(p))
	wrote, err := f.File.Write(p[:n])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return wrote, err
}
