package vfs

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// An Overlay is a disk that keeps changes in memory and only reads from the disk below. It serves for a dry run of code
// that opens a folder for writing and repairs it.
type Overlay struct {
	FS
	mu    sync.Mutex // guards files and their contents
	files map[string]*changedFile
}

// A changedFile is a file with changes: a prefix of the file below, followed by appended data.
type changedFile struct {
	kept int64 // length of the prefix
	more []byte
	gone bool
}

var _ FS = (*Overlay)(nil)

// NewOverlay returns an overlay over a disk.
func NewOverlay(below FS) *Overlay { return &Overlay{FS: below, files: map[string]*changedFile{}} }

// A Truncation is a file whose end the overlay hides.
type Truncation struct {
	Name   string
	Length int64 // visible bytes of the file below
	Lost   int64 // hidden bytes
}

// Truncations returns the files that were truncated and not removed, sorted by name.
func (o *Overlay) Truncations() (cuts []Truncation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, f := range o.files {
		if size, err := o.FS.Size(name); err == nil && !f.gone && size > f.kept {
			cuts = append(cuts, Truncation{name, f.kept, size - f.kept})
		}
	}
	slices.SortFunc(cuts, func(a, b Truncation) int { return strings.Compare(a.Name, b.Name) })
	return cuts
}

// change returns the changes of a file. The caller holds mu.
func (o *Overlay) change(name string) (*changedFile, error) {
	if f := o.files[name]; f != nil {
		return f, nil
	}
	size, err := o.FS.Size(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f := &changedFile{kept: size, gone: err != nil}
	o.files[name] = f
	return f, nil
}

// Append opens a file; writes stay in memory.
func (o *Overlay) Append(name string) (File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.change(name)
	if err != nil {
		return nil, err
	}
	f.gone = false
	return &overlayFile{o, f}, nil
}

// Truncate hides the end of a file.
func (o *Overlay) Truncate(name string, size int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.change(name)
	switch {
	case err != nil:
		return err
	case f.gone:
		return notThere("truncate", name)
	case size <= f.kept:
		f.kept, f.more = size, nil
	case size < f.kept+int64(len(f.more)):
		f.more = f.more[:size-f.kept]
	}
	return nil
}

// Remove hides a file.
func (o *Overlay) Remove(name string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	f, err := o.change(name)
	if err != nil {
		return err
	}
	if f.gone {
		return notThere("remove", name)
	}
	*f = changedFile{gone: true}
	return nil
}

// Rename is not supported: opening a folder does not rename files.
func (o *Overlay) Rename(from, _ string) error {
	return &fs.PathError{Op: "rename", Path: from, Err: errors.ErrUnsupported}
}

// SyncDir does nothing, because changes are never durable.
func (o *Overlay) SyncDir(string) error { return nil }

// MkdirAll does nothing: a missing folder counts as empty.
func (o *Overlay) MkdirAll(string) error { return nil }

// Size returns the length of a file with its changes.
func (o *Overlay) Size(name string) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f := o.files[name]
	switch {
	case f == nil:
		return o.FS.Size(name)
	case f.gone:
		return 0, notThere("stat", name)
	}
	return f.kept + int64(len(f.more)), nil
}

// List returns the names of files, with the changes.
func (o *Overlay) List(dir string) ([]string, error) {
	names, err := o.FS.List(dir)
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, f := range o.files {
		if base := filepath.Base(name); filepath.Dir(name) == filepath.Clean(dir) && !f.gone {
			names = append(names, base)
		}
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(base string) bool {
		f := o.files[filepath.Join(dir, base)]
		return f != nil && f.gone
	})
	return names, err
}

// Open opens a file with its current changes.
func (o *Overlay) Open(name string) (io.ReadCloser, error) {
	f, err := o.OpenAt(name)
	if err != nil {
		return nil, err
	}
	size, err := o.Size(name)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(f, 0, size), f}, nil
}

// OpenAt opens a file for random reads. Data appended later can be read, too.
func (o *Overlay) OpenAt(name string) (ReaderAt, error) {
	o.mu.Lock()
	f := o.files[name]
	o.mu.Unlock()
	if f == nil {
		return o.FS.OpenAt(name)
	}
	if f.gone {
		return nil, notThere("open", name)
	}
	below, err := o.FS.OpenAt(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &overlayReader{o, f, nil}, nil
	case err != nil:
		return nil, err
	}
	return &overlayReader{o, f, below}, nil
}

func notThere(op, name string) error { return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist} }

type overlayFile struct {
	o *Overlay
	f *changedFile
}

func (w *overlayFile) Write(p []byte) (int, error) {
	w.o.mu.Lock()
	defer w.o.mu.Unlock()
	w.f.more = append(w.f.more, p...)
	return len(p), nil
}

func (w *overlayFile) Sync() error  { return nil }
func (w *overlayFile) Close() error { return nil }

type overlayReader struct {
	o     *Overlay
	f     *changedFile
	below ReaderAt // nil if there is no file below
}

// ReadAt reads the prefix from the file below and the rest from memory.
func (r *overlayReader) ReadAt(p []byte, off int64) (n int, err error) {
	r.o.mu.Lock()
	kept, more := r.f.kept, r.f.more
	r.o.mu.Unlock()
	if off < kept {
		n, err = r.below.ReadAt(p[:min(int64(len(p)), kept-off)], off)
		if err != nil && !errors.Is(err, io.EOF) || n == len(p) || off+int64(n) < kept {
			return n, err
		}
	}
	m, err := bytes.NewReader(more).ReadAt(p[n:], off+int64(n)-kept)
	return n + m, err
}

func (r *overlayReader) Close() error {
	if r.below == nil {
		return nil
	}
	return r.below.Close()
}
