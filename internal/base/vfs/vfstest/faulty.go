package vfstest

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"

	"kumo/internal/base/vfs"
)

// Faulty is a disk that fails on demand: the error-injecting twin of the one below it.
type Faulty struct {
	vfs.FS
	mu     sync.Mutex
	room   int64            // bytes that can still be written; negative: without limit
	dies   bool             // the process dies,
	life   int64            // when so many more bytes were written
	synced map[string]int64 // how much of each file that was written to is durable; negative: not even its name

	removed  []removedFile // removed files that may come back
	halfDone func() error  // what the process died in
}

// NewFaulty puts a disk over below that is healthy until told otherwise.
func NewFaulty(below vfs.FS) *Faulty { return &Faulty{FS: below, room: -1, synced: map[string]int64{}} }

// SetRoom lets n more bytes be written; the write that goes beyond is torn there and fails with ENOSPC. A negative n
// takes the limit away.
func (d *Faulty) SetRoom(n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = n
}

// Append opens a file whose writes obey the limits.
func (d *Faulty) Append(name string) (vfs.File, error) {
	if d.Dead() {
		return nil, ErrDead
	}
	size, err := d.FS.Size(name)
	if errors.Is(err, fs.ErrNotExist) {
		size = -1
	}
	f, err := d.FS.Append(name)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.synced[name]; !ok {
		d.synced[name] = size
	}
	return &faultyFile{File: f, disk: d, name: name}, nil
}

// reserve returns how many of n bytes may be written, and the error for the rest.
func (d *Faulty) reserve(n int) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	got, err := n, error(nil)
	if d.dies && d.life < int64(n) {
		got, err = int(max(d.life, 0)), ErrDead
	}
	if d.room >= 0 && d.room < int64(got) {
		got, err = int(d.room), syscall.ENOSPC
	}
	d.life -= int64(n)
	if d.room >= 0 {
		d.room -= int64(got)
	}
	return got, err
}

type faultyFile struct {
	vfs.File
	disk *Faulty
	name string
}

var _ io.Writer = (*faultyFile)(nil)

func (f *faultyFile) Write(p []byte) (int, error) {
	n, fault := f.disk.reserve(len(p))
	wrote, err := f.File.Write(p[:n])
	if err == nil {
		err = fault
	}
	return wrote, err
}

func (f *faultyFile) Sync() error {
	d := f.disk
	d.mu.Lock()
	err := d.chargeCall(nil)
	d.mu.Unlock()
	if err != nil {
		return err
	}
	size, gone := d.FS.Size(f.name)                      // before: others may write meanwhile
	if err := f.File.Sync(); err != nil || gone != nil { // it was removed while it was open
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.synced[f.name] < 0 {
		d.dropRemoved(filepath.Dir(f.name))
	}
	d.synced[f.name] = size
	return nil
}
