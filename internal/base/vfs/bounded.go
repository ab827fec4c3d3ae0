package vfs

import (
	"container/list"
	"errors"
	"io/fs"
	"sync"
)

// Bounded is a disk of which only so many files are open for reading anywhere at a time, however many its user holds:
// what was read longest ago is closed, and opened again by its next read. The state of a large crawl is in more files
// than a process may have open. It asks of its user that a file is not removed or renamed before it is closed.
type Bounded struct {
	FS
	max int

	mu   sync.Mutex
	room *sync.Cond // a file is not being read any more
	open int
	idle list.List // of *boundedFile: open, and not being read; the first was read last
}

// NewBounded puts a disk over below of which at most n files are open at a time.
func NewBounded(below FS, n int) *Bounded {
	d := &Bounded{FS: below, max: max(n, 1)}
	d.room = sync.NewCond(&d.mu)
	return d
}

// Link is for [Link].
func (d *Bounded) Link(from, to string) error {
	if !Link(d.FS, from, to) {
		return errors.ErrUnsupported
	}
	return nil
}

// OpenAt opens a file for reading anywhere in it.
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

// A boundedFile is open, or closed until somebody reads it.
type boundedFile struct {
	disk    *Bounded
	name    string
	file    ReaderAt      // nil while it is not open
	readers int           // who read it
	idle    *list.Element // of disk.idle; nil while it is not open, or read
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

// acquire opens the file, if need be in the place of another, and holds it open until release. The disk's lock is held.
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
		_ = f.closeIdle() // it was only read
	} else {
		f.idle = d.idle.PushFront(f)
	}
	d.room.Signal()
}

// evict closes the file that was read longest ago, and reports whether there was one.
func (d *Bounded) evict() bool {
	last := d.idle.Back()
	if last == nil {
		return false
	}
	_ = last.Value.(*boundedFile).closeIdle() // it was only read
	return true
}

// closeIdle closes what is open and not being read.
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

// Close closes the file when nobody reads it any more.
func (f *boundedFile) Close() error {
	d := f.disk
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.closed {
		return fs.ErrClosed
	}
	f.closed = true
	if f.file == nil || f.readers > 0 {
		d.room.Broadcast() // who waits to open it sees that it is closed
		return nil
	}
	err := f.closeIdle()
	d.room.Signal()
	return err
}
