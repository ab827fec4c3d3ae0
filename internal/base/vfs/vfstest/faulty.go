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

// Faulty is a disk that injects errors on demand.
type Faulty struct {
	vfs.FS
	mu     sync.Mutex
	room   int64            // bytes that can still be written; negative: unlimited
	dies   bool             // the process will die,
	life   int64            // after this many more bytes
	synced map[string]int64 // durable length of each file that was written to; negative: not even its name is durable

	removed  []removedFile // files whose removal is not durable
	halfDone func() error  // the call during which the process died
}

// NewFaulty returns a disk over below that has no faults yet.
func NewFaulty(below vfs.FS) *Faulty { return &Faulty{FS: below, room: -1, synced: map[string]int64{}} }

// SetRoom limits the bytes that can be written to n. The write that exceeds the limit is torn and fails with ENOSPC. A
// negative n removes the limit.
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
	size, gone := d.FS.Size(f.name)                      // taken before the sync: others may write during it
	if err := f.File.Sync(); err != nil || gone != nil { // removed while open
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
