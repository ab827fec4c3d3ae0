package vfs

import (
	"container/list"
	"errors"
	"io/fs"
	"sync"
)

// Bounded is a disk that keeps at most a given number of files open for random reads, however many its user has open.
// The least recently read file is closed, and reopened by its next read. The state of a large crawl has more files than
// a process may open. A file must be closed before it is removed or renamed.
type Bounded struct {
	FS
	max int

	mu   sync.Mutex
	room *sync.Cond // signaled when a file becomes idle or is closed
	open int
	idle list.List // of *boundedFile: open and not being read, most recently read first
}

// NewBounded returns a disk over below that keeps at most n files open.
func NewBounded(below FS, n int) *Bounded {
	d := &Bounded{FS: below, max: max(n, 1)}
	d.room = sync.NewCond(&d.mu)
	return d
}

// Link implements the function [Link] for this disk.
func (d *Bounded) Link(from, to string) error {
	if !Link(d.FS, from, to) {
		return errors.ErrUnsupported
	}
	return nil
}

// OpenAt opens a file for random reads.
func (d *Bounded) OpenAt(name string) (ReaderAt, error) {
	f := &boundedFile{disk: d, name: name}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := f.acquire(); err != nil {
		return nil, err
	}
	f.release()
	return f, nil
}

// A boundedFile is a file of its user, open or closed on the disk below.
type boundedFile struct {
	disk    *Bounded
	name    string
	file    ReaderAt      // nil while closed below
	readers int           // number of reads in progress
	idle    *list.Element // element of disk.idle; nil while the file is closed below or being read
	closed  bool
}

func (f *boundedFile) ReadAt(p []byte, off int64) (int, error) {
	d := f.disk
	d.mu.Lock()
	err := f.acquire()
	file := f.file
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	n, err := file.ReadAt(p, off)
	d.mu.Lock()
	f.release()
	d.mu.Unlock()
	return n, err
}

// acquire opens the file, closing another one if necessary, and keeps it open until release. The caller holds the
// disk's lock.
func (f *boundedFile) acquire() (err error) {
	d := f.disk
	for !f.closed && f.file == nil && d.open >= d.max && !d.evict() {
		d.room.Wait()
	}
	switch {
	case f.closed:
		return &fs.PathError{Op: "read", Path: f.name, Err: fs.ErrClosed}
	case f.file == nil:
		if f.file, err = d.FS.OpenAt(f.name); err != nil {
			f.file = nil
			return err
		}
		d.open++
	case f.idle != nil:
		d.idle.Remove(f.idle)
		f.idle = nil
	}
	f.readers++
	return nil
}

func (f *boundedFile) release() {
	d := f.disk
	if f.readers--; f.readers > 0 {
		return
	}
	if f.closed {
		_ = f.closeIdle() // only read, so the error does not matter
	} else {
		f.idle = d.idle.PushFront(f)
	}
	d.room.Signal()
}

// evict closes the least recently read idle file, and reports whether there was one.
func (d *Bounded) evict() bool {
	last := d.idle.Back()
	if last == nil {
		return false
	}
	_ = last.Value.(*boundedFile).closeIdle() // only read, so the error does not matter
	return true
}

// closeIdle closes the file below. It must be open and not being read.
func (f *boundedFile) closeIdle() error {
	d := f.disk
	if f.idle != nil {
		d.idle.Remove(f.idle)
		f.idle = nil
	}
	file := f.file
	f.file = nil
	d.open--
	return file.Close()
}

// Close closes the file. If it is being read, the last reader closes it below.
func (f *boundedFile) Close() error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	if f.file == nil || f.readers > 0 {
		d.room.Broadcast() // wake all, since readers waiting to open this file must fail now
		return nil
	}
	err := f.closeIdle()
	d.room.Signal()
	return err
}
