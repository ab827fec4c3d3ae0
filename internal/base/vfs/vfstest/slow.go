package vfstest

import (
	"io"

	"kumo/internal/base/vfs"
)

// A Slow disk delays every call to the disk below, as a busy or stalled disk does.
type Slow struct {
	vfs.FS
	wait func(call string)
}

// NewSlow returns a disk over below that calls wait before each call. The argument is the type of the call: open, read,
// write, sync, or change (of names or lengths). wait must be safe for concurrent use.
func NewSlow(below vfs.FS, wait func(call string)) *Slow { return &Slow{below, wait} }

// Append opens a file whose writes are delayed.
func (d *Slow) Append(name string) (vfs.File, error) {
	d.wait("open")
	f, err := d.FS.Append(name)
	if err != nil {
		return nil, err
	}
	return &slowFile{f, d}, nil
}

// Open opens a file after the delay.
func (d *Slow) Open(name string) (io.ReadCloser, error) {
	d.wait("open")
	return d.FS.Open(name)
}

// OpenAt opens a file whose reads are delayed.
func (d *Slow) OpenAt(name string) (vfs.ReaderAt, error) {
	d.wait("open")
	f, err := d.FS.OpenAt(name)
	if err != nil {
		return nil, err
	}
	return &slowSource{f, d}, nil
}

// Rename renames a file.
func (d *Slow) Rename(from, to string) error {
	d.wait("change")
	return d.FS.Rename(from, to)
}

// Truncate truncates a file to size.
func (d *Slow) Truncate(name string, size int64) error {
	d.wait("change")
	return d.FS.Truncate(name, size)
}

// Remove removes a file.
func (d *Slow) Remove(name string) error {
	d.wait("change")
	return d.FS.Remove(name)
}

// SyncDir makes removals durable.
func (d *Slow) SyncDir(dir string) error {
	d.wait("sync")
	return d.FS.SyncDir(dir)
}

type slowFile struct {
	vfs.File
	disk *Slow
}

func (f *slowFile) Write(p []byte) (int, error) {
	f.disk.wait("write")
	return f.File.Write(p)
}

func (f *slowFile) Sync() error {
	f.disk.wait("sync")
	return f.File.Sync()
}

type slowSource struct {
	vfs.ReaderAt
	disk *Slow
}

func (s *slowSource) ReadAt(p []byte, off int64) (int, error) {
	s.disk.wait("read")
	return s.ReaderAt.ReadAt(p, off)
}
