// Package merged presents several crawl folders, such as those of the nodes of a crawl, as one read-only folder.
//
// The merged folder has all files of the folder warc. Lists with a line for each page, link or request (pages.jsonl,
// text.jsonl, crawl.log and others) are the lists of all folders, one after the other. A last line that is incomplete,
// as of a process that was killed, is left out.
package merged

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kumo/internal/base/vfs"
)

// A Folder is one of the crawl folders.
type Folder struct {
	Name string // in errors: its path or URL
	Dir  string // its path on the disk
	Disk vfs.FS
}

// New returns a disk on which dir has the merged contents of some folders. dir need not exist. Other names are of the
// disk under it.
func New(under vfs.FS, dir string, folders []Folder) vfs.FS {
	return &disk{FS: under, dir: dir, folders: folders, ends: map[string]int64{}}
}

type disk struct {
	vfs.FS
	dir     string
	folders []Folder

	mu   sync.Mutex
	ends map[string]int64 // where the complete lines of a file end, by name
}

var errReadOnly = errors.New("the folders of several nodes can only be read together")

// within returns a name relative to the merged folder.
func (d *disk) within(name string) (rel string, is bool) {
	rel, err := filepath.Rel(d.dir, name)
	return rel, err == nil && filepath.IsLocal(rel)
}

// isList reports whether a file is a list of lines, which several folders have: those directly in the folder.
func isList(rel string) bool {
	return !strings.ContainsRune(rel, filepath.Separator) && (filepath.Ext(rel) == ".jsonl" || filepath.Ext(rel) == ".log")
}

// owner returns the folder that has a file.
func (d *disk) owner(op, rel string) (*Folder, error) {
	var found *Folder
	for i := range d.folders {
		f := &d.folders[i]
		size, err := f.Disk.Size(filepath.Join(f.Dir, rel))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, err
		case found == nil:
			found = f
			continue
		}
		other, err := found.Disk.Size(filepath.Join(found.Dir, rel))
		if err != nil {
			return nil, err
		}
		if other != size && strings.HasPrefix(rel, "warc") {
			return nil, fmt.Errorf("%s and %s have different files %s: export them one by one", found.Name, f.Name, rel)
		}
	}
	if found == nil {
		return nil, &fs.PathError{Op: op, Path: filepath.Join(d.dir, rel), Err: fs.ErrNotExist}
	}
	return found, nil
}

func (d *disk) Open(name string) (io.ReadCloser, error) {
	rel, is := d.within(name)
	if !is {
		return d.FS.Open(name)
	}
	if !isList(rel) {
		f, err := d.owner("open", rel)
		if err != nil {
			return nil, err
		}
		return f.Disk.Open(filepath.Join(f.Dir, rel))
	}
	l, err := d.list("open", rel)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.NewSectionReader(l, 0, l.size()), l}, nil
}

func (d *disk) OpenAt(name string) (vfs.ReaderAt, error) {
	rel, is := d.within(name)
	if !is {
		return d.FS.OpenAt(name)
	}
	if !isList(rel) {
		f, err := d.owner("open", rel)
		if err != nil {
			return nil, err
		}
		return f.Disk.OpenAt(filepath.Join(f.Dir, rel))
	}
	return d.list("open", rel)
}

func (d *disk) Size(name string) (n int64, err error) {
	rel, is := d.within(name)
	if !is {
		return d.FS.Size(name)
	}
	if !isList(rel) {
		f, err := d.owner("stat", rel)
		if err != nil {
			return 0, err
		}
		return f.Disk.Size(filepath.Join(f.Dir, rel))
	}
	l, err := d.list("stat", rel)
	if err != nil {
		return 0, err
	}
	return l.size(), l.Close()
}

// List returns the names of all folders' files, each once.
func (d *disk) List(dir string) (all []string, err error) {
	rel, is := d.within(dir)
	if !is {
		return d.FS.List(dir)
	}
	for _, f := range d.folders {
		names, err := f.Disk.List(filepath.Join(f.Dir, rel))
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func (d *disk) Append(name string) (vfs.File, error) {
	if _, is := d.within(name); is {
		return nil, errReadOnly
	}
	return d.FS.Append(name)
}

func (d *disk) Rename(from, to string) error {
	return d.change(from, func() error { return d.FS.Rename(from, to) })
}

func (d *disk) Truncate(name string, size int64) error {
	return d.change(name, func() error { return d.FS.Truncate(name, size) })
}

func (d *disk) Remove(name string) error {
	return d.change(name, func() error { return d.FS.Remove(name) })
}

func (d *disk) change(name string, f func() error) error {
	if _, is := d.within(name); is {
		return errReadOnly
	}
	return f()
}

// A list is the same file of several folders, one after the other.
type list struct {
	parts []part
}

type part struct {
	vfs.ReaderAt
	from, to int64 // in the list
}

// list opens a list.
func (d *disk) list(op, rel string) (*list, error) {
	l := &list{}
	for _, f := range d.folders {
		name := filepath.Join(f.Dir, rel)
		r, err := f.Disk.OpenAt(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		at := l.size()
		l.parts = append(l.parts, part{r, at, at})
		end, err := d.end(f.Disk, name, r)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("read %s of %s: %w", rel, f.Name, err), l.Close())
		}
		l.parts[len(l.parts)-1].to += end
	}
	if len(l.parts) == 0 {
		return nil, &fs.PathError{Op: op, Path: filepath.Join(d.dir, rel), Err: fs.ErrNotExist}
	}
	return l, nil
}

// end returns where the complete lines of a file end. It is the same at each call, so that positions stay valid while
// the file grows.
func (d *disk) end(of vfs.FS, name string, r io.ReaderAt) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if end, known := d.ends[name]; known {
		return end, nil
	}
	size, err := of.Size(name)
	if err != nil {
		return 0, err
	}
	end := size
	buf := make([]byte, 4<<10)
	for end > 0 {
		n := min(end, int64(len(buf)))
		if _, err := r.ReadAt(buf[:n], end-n); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := strings.LastIndexByte(string(buf[:n]), '\n'); i >= 0 {
			end -= n - int64(i) - 1
			break
		}
		end -= n
	}
	d.ends[name] = end
	return end, nil
}

func (l *list) size() int64 {
	if len(l.parts) == 0 {
		return 0
	}
	return l.parts[len(l.parts)-1].to
}

func (l *list) ReadAt(b []byte, at int64) (n int, err error) {
	for _, p := range l.parts {
		if n == len(b) {
			return n, nil
		}
		if from := at + int64(n); from >= p.from && from < p.to {
			want := min(int64(len(b)-n), p.to-from)
			m, err := p.ReaderAt.ReadAt(b[n:n+int(want)], from-p.from)
			if n += m; int64(m) < want {
				return n, errors.Join(err, io.ErrUnexpectedEOF)
			}
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (l *list) Close() (err error) {
	for _, p := range l.parts {
		err = errors.Join(err, p.ReaderAt.Close())
	}
	return err
}
