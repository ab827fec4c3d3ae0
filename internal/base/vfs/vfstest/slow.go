package vfstest

import (
	"io"

	"kumo/internal/base/vfs"
)

// A Slow disk has every call wait before it reaches the disk below: for a while, as with a disk that is busy, or until
// somebody lets it go on, as with one that stalls.
type Slow struct {
	vfs.FS
	wait func(call string)
}

// NewSlow puts a disk over below whose calls wait first. wait is told what they are: open, read, write, sync, or change
// for what changes names or lengths. Many may call it at once.
func NewSlow(below vfs.FS, wait func(call string)) *Slow { return &Slow{below, wait} }

// Append opens a file whose writes wait.
func (d *Slow) Append(name string) (vfs.File, error) {
	d.wait("open")
	f, err := d.FS.Append(name)
	if err != nil {
		return nil, err
	}
	return &slowFile{f, d}, nil
}

// Open opens a file.
func (d *Slow) Open(name string) (io.ReadCloser, error) {
	d.wait("open")
	return d.FS.Open(name)
}

// OpenAt opens a file whose reads wait.
func (d *Slow) OpenAt(name string) (vfs.ReaderAt, error) {
	d.wait("open")
	f, err := d.FS.OpenAt(name)
	if err != nil {
		return nil, err
	}
	return &slowSource{f, d}, nil
}

// Rename gives a file another name.
func (d *Slow) Rename(from, to string) error {
	d.wait("change")
	return d.FS.Rename(from, to)
}

// Truncate cuts a file to size.
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
