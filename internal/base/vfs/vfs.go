// Package vfs abstracts the local disk: append-only files that can be synced, renamed and truncated.
//
// All state files and all open record files go through it. So a test can substitute a disk that fails, tears writes or
// is full; see package vfstest.
package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// An FS is a disk. Names are paths of the operating system.
type FS interface {
	// Append opens a file for appending, and creates it if it does not exist.
	Append(name string) (File, error)
	// Open opens a file for reading.
	Open(name string) (io.ReadCloser, error)
	// OpenAt opens a file for random reads by several goroutines.
	OpenAt(name string) (ReaderAt, error)
	// Rename renames a file durably within its folder, and replaces an existing file.
	Rename(from, to string) error
	// Truncate truncates a file to size.
	Truncate(name string, size int64) error
	// Remove removes a file. Unless its folder is synced, it may come back after a power failure.
	Remove(name string) error
	// SyncDir makes removals from a folder durable.
	SyncDir(dir string) error
	// MkdirAll creates a folder and its parents durably.
	MkdirAll(name string) error
	// List returns the names of a folder's files, sorted; none if the folder does not exist.
	List(dir string) ([]string, error)
	// Size returns the length of a file. If it does not exist, the error is fs.ErrNotExist.
	Size(name string) (int64, error)
	// Free returns the number of bytes that can be written below dir.
	Free(dir string) (uint64, error)
}

// Link gives an immutable file a second name. It returns false if the disk does not support this.
func Link(disk FS, from, to string) bool {
	l, can := disk.(interface{ Link(from, to string) error })
	return can && l.Link(from, to) == nil
}

// IsOS reports whether a disk is the operating system's, possibly as a Bounded.
func IsOS(disk FS) bool {
	if b, ok := disk.(*Bounded); ok {
		return IsOS(b.FS)
	}
	if o, ok := disk.(interface{ Under() FS }); ok {
		return IsOS(o.Under())
	}
	return disk == OS
}

// A File is open for appending.
type File interface {
	io.WriteCloser
	// Sync returns when all written data and the file's name are durable.
	Sync() error
}

// A ReaderAt is open for random reads.
type ReaderAt interface {
	io.ReaderAt
	io.Closer
}

// OS is the file system of this machine.
var OS FS = osFS{}

type osFS struct{}

func (osFS) Append(name string) (File, error) {
	_, err := os.Stat(name)
	isNew := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	file := &osFile{File: f}
	if isNew {
		file.newIn = filepath.Dir(name)
	}
	return file, nil
}

func (osFS) Link(from, to string) error              { return os.Link(from, to) }
func (osFS) Open(name string) (io.ReadCloser, error) { return os.Open(name) }
func (osFS) OpenAt(name string) (ReaderAt, error)    { return os.Open(name) }
func (osFS) Truncate(name string, size int64) error  { return os.Truncate(name, size) }
func (osFS) Remove(name string) error                { return os.Remove(name) }
func (osFS) SyncDir(dir string) error                { return syncDir(dir) }
func (osFS) Free(dir string) (uint64, error)         { return free(dir) }

func (d osFS) MkdirAll(name string) error {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	above := filepath.Dir(name)
	if above != name {
		if err := d.MkdirAll(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(name, 0o755); errors.Is(err, fs.ErrExist) {
		return os.MkdirAll(name, 0o755) // another goroutine created it, or it is a file
	} else if err != nil {
		return err
	}
	return syncDir(above)
}

func (osFS) Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncDir(filepath.Dir(to))
}

func (osFS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, err
}

func (osFS) Size(name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

type osFile struct {
	*os.File
	newIn string // the folder to sync with the first Sync; "" if the name is durable
}

func (f *osFile) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	if f.newIn == "" {
		return nil
	}
	dir := f.newIn
	f.newIn = ""
	return syncDir(dir)
}

// IsFull reports whether err means that the disk is full.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrNoRoom) || isFull(err)
}
