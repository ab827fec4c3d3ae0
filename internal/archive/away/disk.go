package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kumo/internal/archive/place"
	"kumo/internal/base/vfs"
)

// A Disk reads a crawl's files from a storage location, by ranges, if the folder does not have them. Writes go to the
// folder.
type Disk struct {
	vfs.FS
	ctx      context.Context
	root     string // the crawl's folder
	prefix   string // prefix of the names that are looked up in the location
	place    place.Place
	manifest *Manifest
}

var _ vfs.FS = (*Disk)(nil)

// NewOverlay adds a storage location to the folder of a crawl whose WARC files and indexes are uploaded there. The
// other record files still grow, so they are read from the folder. The context ends reads.
func NewOverlay(ctx context.Context, disk vfs.FS, dir string, p place.Place, there *Manifest) *Disk {
	return &Disk{FS: disk, ctx: ctx, root: filepath.Clean(dir), prefix: "warc/", place: p, manifest: there}
}

// NewRemote returns a disk that reads all files of a crawl from the storage location; the folder has none of them.
func NewRemote(ctx context.Context, disk vfs.FS, dir string, p place.Place, there *Manifest) *Disk {
	d := NewOverlay(ctx, disk, dir, p, there)
	d.prefix = ""
	return d
}

// Under returns the disk with the folder.
func (d *Disk) Under() vfs.FS { return d.FS }

// A remote is a file in the location: whole, or in parts.
type remote struct {
	name  string
	size  int64
	parts []Entry
}

// remote returns the parts of a file in the location.
func (d *Disk) remote(name string) (r remote, is bool) {
	rel, err := filepath.Rel(d.root, name)
	if err != nil || strings.HasPrefix(rel, "..") {
		return r, false
	}
	if rel = filepath.ToSlash(rel); !strings.HasPrefix(rel, d.prefix) {
		return r, false
	}
	r = remote{name: rel, parts: d.manifest.Parts(rel)}
	for _, e := range r.parts {
		r.size += e.Size
	}
	return r, len(r.parts) > 0
}

// Size returns the length of a file.
func (d *Disk) Size(name string) (int64, error) {
	size, err := d.FS.Size(name)
	if errors.Is(err, fs.ErrNotExist) {
		if r, is := d.remote(name); is {
			return r.size, nil
		}
	}
	return size, err
}

// List returns the names of the files in the folder or in the location.
func (d *Disk) List(dir string) ([]string, error) {
	names, err := d.FS.List(dir)
	rel, outside := filepath.Rel(d.root, dir)
	if err != nil || outside != nil {
		return names, err
	}
	for _, e := range d.manifest.All() {
		name := e.Name
		if list, _, is := ParsePartName(name); is {
			name = list
		}
		if path.Dir(name) == filepath.ToSlash(rel) && strings.HasPrefix(name, d.prefix) {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Open opens a file for reading from its beginning.
func (d *Disk) Open(name string) (io.ReadCloser, error) {
	f, err := d.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		if r, is := d.remote(name); is && len(r.parts) == 1 {
			return d.read(&r.parts[0], 0, r.size) // the file may have grown since
		} else if is {
			parts := &reader{disk: d, file: r}
			return struct {
				io.Reader
				io.Closer
			}{io.NewSectionReader(parts, 0, r.size), parts}, nil
		}
	}
	return f, err
}

// OpenAt opens a file for reading anywhere in it.
func (d *Disk) OpenAt(name string) (vfs.ReaderAt, error) {
	f, err := d.FS.OpenAt(name)
	if errors.Is(err, fs.ErrNotExist) {
		if r, is := d.remote(name); is {
			return &reader{disk: d, file: r}, nil
		}
	}
	return f, err
}

// Link gives a file of the folder a second name.
func (d *Disk) Link(from, to string) error {
	if !vfs.Link(d.FS, from, to) {
		return errors.ErrUnsupported
	}
	return nil
}

// read opens a range of a file in the location.
func (d *Disk) read(e *Entry, offset, length int64) (io.ReadCloser, error) {
	r, err := d.place.Open(d.ctx, e.Name, offset, length)
	if err != nil {
		return nil, fmt.Errorf("read %s/%s: %w", d.place.URL(), e.Name, err)
	}
	return r, nil
}

// A reader reads a file in the location. Sequential reads continue the open request, and the requested ranges grow. A
// sequential read of a whole file thus needs few requests, and a read of one record transfers few other bytes.
type reader struct {
	disk *Disk
	file remote

	mu   sync.Mutex // guards the fields below
	body io.ReadCloser
	at   int64 // offset in the file of the next byte of body
	end  int64 // end of the requested range
	next int64 // length of the next range
}

const (
	minRange = 64 << 10
	maxRange = 64 << 20
)

func (r *reader) ReadAt(p []byte, off int64) (n int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for n < len(p) {
		if off+int64(n) >= r.file.size {
			return n, io.EOF
		}
		if err := r.openRange(off+int64(n), int64(len(p)-n)); err != nil {
			return n, err
		}
		got, err := r.body.Read(p[n:])
		r.at += int64(got)
		if n += got; err != nil && r.at < r.end {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			err = fmt.Errorf("read %s/%s at byte %d: %w", r.disk.place.URL(), r.file.name, r.at, err)
			return n, errors.Join(err, r.closeRange())
		}
	}
	return n, nil
}

// openRange positions body at an offset.
func (r *reader) openRange(off, length int64) (err error) {
	if r.body != nil && r.at == off && r.at < r.end {
		return nil
	}
	if r.at == off && r.end > 0 {
		r.next = min(r.next*4, maxRange)
	} else {
		r.next = minRange
	}
	if err := r.closeRange(); err != nil {
		return err
	}
	begin, part := int64(0), 0
	for ; off >= begin+r.file.parts[part].Size; part++ { // a file has few parts
		begin += r.file.parts[part].Size
	}
	of := &r.file.parts[part]
	length = min(max(length, r.next), begin+of.Size-off)
	if r.body, err = r.disk.read(of, off-begin, length); err != nil {
		r.body = nil
		return err
	}
	r.at, r.end = off, off+length
	return nil
}

// closeRange closes the open request.
func (r *reader) closeRange() (err error) {
	if r.body != nil {
		err = r.body.Close()
		r.body = nil
	}
	return err
}

func (r *reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closeRange()
}
