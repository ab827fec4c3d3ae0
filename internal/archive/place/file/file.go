// Package file stores files in a folder of the local disk.
package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// A Place is a folder. A file is written as ".NAME.*.open" in the same folder until it is closed. Files left by a
// killed process are removed with their folder.
type Place struct {
	dir  string
	disk vfs.FS // used for writing; must be based on the operating system's
}

var (
	_ place.Place  = (*Place)(nil)
	_ place.Locker = (*Place)(nil)
)

// Open opens the location in a folder, which need not exist.
func Open(dir string, disk vfs.FS) (*Place, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return &Place{dir: abs, disk: disk}, nil
}

// Dir returns the folder.
func (p *Place) Dir() string { return p.dir }

// URL returns the folder's file URL.
func (p *Place) URL() string {
	return (&url.URL{Scheme: "file", Path: filepath.ToSlash(p.dir)}).String()
}

func (p *Place) path(name string) (string, error) {
	if err := place.ValidName(name); err != nil {
		return "", err
	}
	return filepath.Join(p.dir, filepath.FromSlash(name)), nil
}

// Open opens a file for reading.
func (p *Place) Open(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(full)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: full, Err: fs.ErrNotExist} // a folder is not a file
		}
		return nil, errors.Join(err, f.Close())
	}
	if offset > 0 {
		if _, err := f.Seek(offset, io.SeekStart); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if length < 0 {
		return f, nil
	}
	return &limited{Reader: io.LimitReader(f, length), Closer: f}, nil
}

type limited struct {
	io.Reader
	io.Closer
}

// Create starts a file.
func (p *Place) Create(_ context.Context, name string) (place.Writer, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(full)
	if err := p.disk.MkdirAll(dir); err != nil {
		return nil, err
	}
	tmp := filepath.Join(dir, fmt.Sprintf(".%s.%08x%s", base, rand.Uint64(), openSuffix))
	f, err := p.disk.Append(tmp)
	if err != nil {
		return nil, err
	}
	return &writer{file: f, disk: p.disk, tmp: tmp, name: full}, nil
}

const openSuffix = ".open"

type writer struct {
	file      vfs.File // nil once closed or aborted
	disk      vfs.FS
	tmp, name string
	err       error // first error of Write
}

func (w *writer) Write(b []byte) (int, error) {
	if w.file == nil {
		return 0, fs.ErrClosed
	}
	n, err := w.file.Write(b)
	w.err = errors.Join(w.err, err)
	return n, err
}

func (w *writer) Close() error {
	if w.file == nil {
		return fs.ErrClosed
	}
	err := w.err
	if err == nil {
		err = w.file.Sync()
	}
	err = errors.Join(err, w.file.Close())
	w.file = nil
	if err == nil {
		if err = w.disk.Rename(w.tmp, w.name); err == nil {
			return nil
		}
	}
	return errors.Join(err, w.disk.Remove(w.tmp))
}

func (w *writer) Abort() {
	if w.file == nil {
		return
	}
	_ = w.file.Close() // the file is discarded
	w.file = nil
	_ = w.disk.Remove(w.tmp) // otherwise it is removed with its folder
}

// List lists a folder.
func (p *Place) List(_ context.Context, dir string) ([]place.Info, error) {
	full := p.dir
	if dir != "" {
		var err error
		if full, err = p.path(dir); err != nil {
			return nil, err
		}
	}
	entries, err := os.ReadDir(full)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		if info, serr := os.Stat(full); serr == nil && !info.IsDir() {
			return nil, nil // a file is not a folder
		}
		return nil, err
	}
	var all []place.Info
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed in the meantime
		}
		if err != nil {
			return nil, err
		}
		all = append(all, place.InfoOf(info))
	}
	return all, nil
}

// Stat describes a file or folder.
func (p *Place) Stat(_ context.Context, name string) (place.Info, error) {
	full, err := p.path(name)
	if err != nil {
		return place.Info{}, err
	}
	info, err := os.Stat(full)
	if err != nil {
		return place.Info{}, err
	}
	return place.InfoOf(info), nil
}

// Rename renames a file.
func (p *Place) Rename(_ context.Context, from, to string) error {
	old, err := p.path(from)
	if err != nil {
		return err
	}
	name, err := p.path(to)
	if err != nil {
		return err
	}
	if _, err := os.Stat(old); err != nil {
		return err
	}
	if err := p.disk.MkdirAll(filepath.Dir(name)); err != nil {
		return err
	}
	return p.disk.Rename(old, name)
}

// Remove removes a file or a folder.
func (p *Place) Remove(_ context.Context, name string) error {
	full, err := p.path(name)
	if err != nil {
		return err
	}
	if info, err := os.Lstat(full); err == nil && !info.IsDir() {
		return p.disk.Remove(full)
	}
	return os.RemoveAll(full)
}

// Lock acquires the operating system's lock on the file ".NAME.lock".
func (p *Place) Lock(_ context.Context, name string) (func() error, error) {
	full, err := p.path(name)
	if err != nil {
		return nil, err
	}
	dir, base := filepath.Split(full)
	if err := p.disk.MkdirAll(dir); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, "."+base+".lock"))
	got, err := l.TryLock()
	switch {
	case err != nil:
		return nil, err
	case !got:
		return nil, fmt.Errorf("%s: %w", full, place.ErrLocked)
	}
	return l.Unlock, nil
}
