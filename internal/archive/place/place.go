// Package place defines storage locations for closed files, such as a local folder, HDFS or an object store. A URL
// names a location. The packages below this one implement the kinds of locations, and pass the contract suite
// placetest.
//
// Files are written once, sequentially, and appear under their names complete or not at all. They cannot be appended to
// or locked; for that use the local disk (package vfs).
package place

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"
)

// A Place is a storage location. Its methods are safe for concurrent use.
//
// A name is a path relative to the location, with slashes ("crawler_de/doc/part-00000"); see [ValidName]. For methods
// that accept a folder, "" is the location itself. Folders exist as soon as they contain a file and are not created.
//
// Open, Stat and Rename of a file that does not exist return fs.ErrNotExist; other methods do not.
type Place interface {
	// Open reads length bytes of a file from offset, or all bytes from offset if length is negative. If the file is
	// shorter, the reader ends early.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Create starts a file. It appears, durably, only when the writer is closed, and replaces any file with the same
	// name.
	Create(ctx context.Context, name string) (Writer, error)
	// List returns the direct contents of a folder, sorted by name; nothing if the folder does not exist. Unfinished
	// files are not listed.
	List(ctx context.Context, dir string) ([]Info, error)
	// Stat describes a file or folder.
	Stat(ctx context.Context, name string) (Info, error)
	// Rename renames a file, also to another folder, and replaces any file with the new name. Readers of the new name
	// see either the old or the new file.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file, or a folder with its contents, also unfinished files. It is no error if there is neither.
	Remove(ctx context.Context, name string) error
	// URL returns the location's URL. Joined with a name, it is the URL of a file.
	URL() string
}

// A Writer writes a file. It is not safe for concurrent use.
type Writer interface {
	io.Writer
	// Close makes the file appear. After an error of Close or of an earlier Write, the file does not appear.
	Close() error
	// Abort discards the file. After Close it does nothing, so that it can be deferred.
	Abort()
}

// An Info describes a file or folder.
type Info struct {
	Name     string // last element of the path
	Size     int64  // bytes; 0 for a folder
	Modified time.Time
	IsDir    bool
}

// InfoOf converts the description of a file system.
func InfoOf(info fs.FileInfo) Info {
	i := Info{Name: info.Name(), Modified: info.ModTime(), IsDir: info.IsDir()}
	if !i.IsDir {
		i.Size = info.Size()
	}
	return i
}

// ValidName returns an error that is fs.ErrInvalid if a name is not valid for a file. Path elements must not begin with
// a dot: such names are reserved for unfinished files.
func ValidName(name string) error {
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element[0] == '.' || strings.ContainsAny(element, "\x00\\") {
			return fmt.Errorf("name %q: %w", name, fs.ErrInvalid)
		}
	}
	return nil
}

// Walk calls f with every file below a folder, in order of names within each folder. The name is relative to the
// location.
func Walk(ctx context.Context, p Place, dir string, f func(name string, info Info) error) error {
	all, err := p.List(ctx, dir)
	if err != nil {
		return err
	}
	for _, info := range all {
		name := path.Join(dir, info.Name)
		if info.IsDir {
			err = Walk(ctx, p, name, f)
		} else {
			err = f(name, info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ReadFile reads a small file.
func ReadFile(ctx context.Context, p Place, name string) ([]byte, error) {
	r, err := p.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// WriteFile writes a small file.
func WriteFile(ctx context.Context, p Place, name string, data []byte) error {
	w, err := p.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.Close()
}

// A Locker is a location with locks.
type Locker interface {
	// Lock acquires the lock of a name. If another process has it, Lock fails at once with [ErrLocked] and, if known,
	// the holder. A process that dies loses its locks.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
}

// ErrLocked means that another process has the lock.
var ErrLocked = errors.New("in use by another process")

// An Uploader is a location that can upload an existing file, and continue an interrupted upload.
type Uploader interface {
	// Upload writes a file of size bytes with a SHA-256. The file appears complete or not at all. If src has other
	// content, the error is [ErrDigest]. After another error or a crash, the same call continues if the location
	// supports it. If the file exists already, Upload may detect that and do nothing. Only one process may upload a
	// name at a time.
	Upload(ctx context.Context, name string, src io.ReaderAt, size int64, sum [sha256.Size]byte) error
}

// A FastFailer is a location that retries failures for a long time, and has a variant that fails fast.
type FastFailer interface {
	// FailFast returns the same location for callers that retry and report failures themselves. Closing the original
	// closes it too.
	FailFast() Place
}

// FailFast returns the fast-failing variant of p, or p if it is not a [FastFailer].
func FailFast(p Place) Place {
	if patient, is := p.(FastFailer); is {
		return patient.FailFast()
	}
	return p
}

// A Prober is a location on a server that is not contacted when the location is created.
type Prober interface {
	// Probe checks once that the location exists, so that a wrong URL or wrong credentials are detected.
	Probe(ctx context.Context) error
}

// Probe calls Probe of a [Prober], and does nothing for other locations.
func Probe(ctx context.Context, p Place) error {
	if a, is := p.(Prober); is {
		return a.Probe(ctx)
	}
	return nil
}

// Transient marks an error as possibly temporary, without a change of the request: the server is unreachable or busy.
func Transient(err error) error { return &transientError{err} }

type transientError struct{ error }

func (p *transientError) Unwrap() error { return p.error }

// IsTransient reports whether an error may be temporary: it is marked as [Transient], means that there is no space, or
// comes from a folder whose server is unreachable.
func IsTransient(err error) bool {
	if _, is := errors.AsType[*transientError](err); is {
		return true
	}
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EIO, syscall.ESTALE, syscall.ENOTCONN, syscall.ETIMEDOUT,
		syscall.EHOSTDOWN, syscall.EHOSTUNREACH}, func(e error) bool { return errors.Is(err, e) })
}

// ErrDigest means that a file does not have the expected digest.
var ErrDigest = errors.New("content does not match its SHA-256")

// CheckDigest returns [ErrDigest] if the digest of the bytes read is not the expected one.
func CheckDigest(read hash.Hash, said [sha256.Size]byte) error {
	if sum := read.Sum(nil); [sha256.Size]byte(sum) != said {
		return fmt.Errorf("%w: it has %x, want %x", ErrDigest, sum, said)
	}
	return nil
}

// Upload calls Upload of an [Uploader]. For other locations it does the same, but starts over each time.
func Upload(ctx context.Context, p Place, name string, src io.ReaderAt, size int64, sum [sha256.Size]byte) error {
	if u, is := p.(Uploader); is {
		return u.Upload(ctx, name, src, size, sum)
	}
	w, err := p.Create(ctx, name)
	if err != nil {
		return err
	}
	defer w.Abort()
	digest := sha256.New()
	in := NewContextReader(ctx, io.NewSectionReader(src, 0, size))
	n, err := io.Copy(io.MultiWriter(w, digest), in)
	if err == nil && n < size {
		err = fmt.Errorf("file ends at byte %d: %w", n, io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = CheckDigest(digest, sum)
	}
	if err != nil {
		return fmt.Errorf("upload %s: %w", name, err)
	}
	return w.Close()
}

// NewContextReader returns a reader whose reads fail after the context has ended.
func NewContextReader(ctx context.Context, r io.Reader) io.Reader { return &contextReader{ctx, r} }

type contextReader struct {
	ctx context.Context
	io.Reader
}

func (s *contextReader) Read(b []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.Reader.Read(b)
}
