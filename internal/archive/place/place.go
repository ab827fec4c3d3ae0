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

// A Place keeps files. Its methods may be called by many goroutines at once.
//
// A name is a path relative to the place, its elements separated by slashes ("crawler_de/doc/part-00000"), as
// [ValidName] has it. "" is the place itself, where a folder is asked for. Folders are not made: they are there as soon
// as a file is in them.
//
// An error about a file that is not there is fs.ErrNotExist; it is an error of Open, Stat and Rename alone.
type Place interface {
	// Open reads length bytes of a file from offset on, or all that is there from offset on if length is negative. Where
	// the file has fewer bytes, the reader ends early.
	Open(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error)
	// Create writes a file. It appears at the writer's Close and not before, durable, in place of what had that name.
	Create(ctx context.Context, name string) (Writer, error)
	// List returns what is directly in a folder, sorted by name; nothing if there is no such folder. Files that are being
	// written are not among it.
	List(ctx context.Context, dir string) ([]Info, error)
	// Stat says what a name stands for.
	Stat(ctx context.Context, name string) (Info, error)
	// Rename gives a file another name, in whatever folder, in place of what has that name. It is atomic for a reader of
	// the new name: it finds the old file or the new.
	Rename(ctx context.Context, from, to string) error
	// Remove removes a file, or a folder with all that is in it, files that are being written included. It is no error
	// if there is neither.
	Remove(ctx context.Context, name string) error
	// URL is the place's own URL; with a name joined to it, that of a file.
	URL() string
}

// A Writer writes a file. One goroutine uses it.
type Writer interface {
	io.Writer
	// Close makes the file appear. After an error it does not, whether of Close or of an earlier Write.
	Close() error
	// Abort drops what was written. After Close it does nothing, so that it can be deferred.
	Abort()
}

// An Info is what a place says of a file or folder.
type Info struct {
	Name     string // the last element of its path
	Size     int64  // bytes; 0 for a folder
	Modified time.Time
	IsDir    bool
}

// InfoOf is what a place says of a file of a file system.
func InfoOf(info fs.FileInfo) Info {
	i := Info{Name: info.Name(), Modified: info.ModTime(), IsDir: info.IsDir()}
	if !i.IsDir {
		i.Size = info.Size()
	}
	return i
}

// ValidName reports why a name cannot be that of a file: an error that is fs.ErrInvalid. Elements do not begin with a
// dot: such names are a place's own, for files that are being written.
func ValidName(name string) error {
	for element := range strings.SplitSeq(name, "/") {
		if element == "" || element[0] == '.' || strings.ContainsAny(element, "\x00\\") {
			return fmt.Errorf("name %q: %w", name, fs.ErrInvalid)
		}
	}
	return nil
}

// Walk calls f with every file in a folder and in those below it, in the order of their names within each folder. The
// name is relative to the place.
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

// ReadFile reads a whole file that is small.
func ReadFile(ctx context.Context, p Place, name string) ([]byte, error) {
	r, err := p.Open(ctx, name, 0, -1)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// WriteFile writes a whole file that is small.
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

// A Locker is a place that can keep others out.
type Locker interface {
	// Lock takes the lock of a name, or fails at once with an error that is [ErrLocked] and says who has it as far as
	// that is known. A process that dies loses its locks.
	Lock(ctx context.Context, name string) (unlock func() error, err error)
}

// ErrLocked is the error of a lock that another process has.
var ErrLocked = errors.New("in use by another process")

// An Uploader is a place that takes files which are whole elsewhere, and goes on with one that was cut off.
type Uploader interface {
	// Upload writes a file of size bytes with a SHA-256. It appears under its name whole, or not at all: if src turns out
	// to be something else, the error is [ErrDigest]. After another error, or a crash, the same call goes on as far as the
	// place can; where the file is there already, it may find that and do nothing. One process at a time uploads a name.
	Upload(ctx context.Context, name string, src io.ReaderAt, size int64, sum [sha256.Size]byte) error
}

// A Prompter is a place that tries for long what fails, and can be had as one that soon says so.
type FastFailer interface {
	// FailFast is the same place, for who tries again by himself and tells people meanwhile. It is closed with the other.
	FailFast() Place
}

// FailFast is a place that soon says that it fails.
func FailFast(p Place) Place {
	if patient, is := p.(FastFailer); is {
		return patient.FailFast()
	}
	return p
}

// An Asker is a place behind a server that is asked for nothing before it is used.
type Prober interface {
	// Probe asks once whether the place is there, so that what is wrong with its URL or the credentials is known.
	Probe(ctx context.Context) error
}

// Probe asks a place that is an [Asker] whether it is there; any other is.
func Probe(ctx context.Context, p Place) error {
	if a, is := p.(Prober); is {
		return a.Probe(ctx)
	}
	return nil
}

// Transient marks an error of a place as one that may be over later, though nobody changes what was asked for: its server
// is not reached, is busy, or takes nothing yet.
func Transient(err error) error { return &transientError{err} }

type transientError struct{ error }

func (p *transientError) Unwrap() error { return p.error }

// IsTransient reports whether an error of a place may be over later: it was marked as [Passing], says that there is no room,
// or comes from a folder whose server is away.
func IsTransient(err error) bool {
	if _, is := errors.AsType[*transientError](err); is {
		return true
	}
	return slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EIO, syscall.ESTALE, syscall.ENOTCONN, syscall.ETIMEDOUT,
		syscall.EHOSTDOWN, syscall.EHOSTUNREACH}, func(e error) bool { return errors.Is(err, e) })
}

// ErrDigest is the error of a file that has another digest than was said.
var ErrDigest = errors.New("its bytes are others: the SHA-256 is not the one that was said")

// CheckDigest holds what was read against what was said: the error is [ErrDigest].
func CheckDigest(read hash.Hash, said [sha256.Size]byte) error {
	if sum := read.Sum(nil); [sha256.Size]byte(sum) != said {
		return fmt.Errorf("%w: %x is, %x was said", ErrDigest, sum, said)
	}
	return nil
}

// Upload is the Upload of an [Uploader], and has the same to say of any other place, where it begins anew each time.
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
		err = fmt.Errorf("it ends at byte %d: %w", n, io.ErrUnexpectedEOF)
	}
	if err == nil {
		err = CheckDigest(digest, sum)
	}
	if err != nil {
		return fmt.Errorf("upload %s: %w", name, err)
	}
	return w.Close()
}

// NewContextReader is a reader whose reads fail once the context has ended.
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
