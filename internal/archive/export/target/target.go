// Package target writes the files of an export into a folder. Files appear complete or not at all. Nothing is written
// outside of the folder, whatever the file names are and whatever links the folder contains. Files of an earlier export
// that the next one does not have are removed.
//
// The file .kumo/export/files lists the files of an export, one per line. It lists every file that exists, and perhaps
// files that have been removed or not yet been written. After a crash the next run thus knows which files it can
// remove. Other files in the folder remain. A folder that has files and was never an export's target is refused.
package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"kumo/internal/base/advice"
	"kumo/internal/base/extsort"
	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
)

// PrivateDir is kumo's own folder in a target.
const PrivateDir = ".kumo"

const (
	stateDir   = PrivateDir + "/export"
	listName   = stateDir + "/files"
	partName   = stateDir + "/part" // followed by a number
	lockName   = stateDir + "/lock"
	formatName = stateDir + "/form"
)

// A Folder is a target that is open for one export. It is not safe for concurrent use.
type Folder struct {
	dir     string
	format  string
	temp    string
	root    *os.Root
	lock    *flock.Flock
	lastDir string // folder of the last file
	open    [maxOpenFiles]bool
	// WrapWriter wraps the writers of file contents. Tests use it to simulate failing disks.
	WrapWriter func(io.Writer) io.Writer
	Stream     io.Writer // receives the contents of the export's files, which stay empty here; nil: not set

	// Written counts files that are new or changed, Unchanged those that existed with the same contents.
	Written, Unchanged, Removed int64
	Bytes                       int64 // of all files
}

const maxOpenFiles = 8 // files at once

// Open creates and locks the folder of an export. A folder with an export in another format is refused. temp is the
// folder for temporary files of sorting; "" is the system's.
func Open(dir, form, temp string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir, format: form, temp: temp, root: root}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// prepare creates what the folder needs, and locks it.
func (f *Folder) prepare() error {
	if _, err := f.root.Lstat(listName); err == nil {
		if err := errors.Join(f.acquireLock(), f.checkFormat()); err != nil {
			return err
		}
		return f.removeParts()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := f.checkEmpty(); err != nil {
		return err
	}
	if err := f.root.MkdirAll(stateDir, 0o755); err != nil {
		return err
	}
	if err := f.acquireLock(); err != nil {
		return err
	}
	return errors.Join(
		f.rewrite(formatName, func(w io.Writer) error { _, err := io.WriteString(w, f.format+"\n"); return err }),
		f.rewrite(listName, func(io.Writer) error { return nil }))
}

// removeParts removes incomplete files of a run that was killed.
func (f *Folder) removeParts() error {
	entries, err := fs.ReadDir(f.root.FS(), stateDir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := path.Join(stateDir, e.Name()); strings.HasPrefix(name, partName) {
			if err := f.root.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFormat refuses a folder with an export in another format, whose files would be removed.
func (f *Folder) checkFormat() error {
	was, err := f.root.ReadFile(formatName)
	if err != nil {
		return err
	}
	if form := string(bytes.TrimSpace(was)); form != f.format {
		return advice.Usage("%s contains an export to %s: name another folder", f.dir, form)
	}
	return nil
}

// checkEmpty refuses a folder with files that are not from an export.
func (f *Folder) checkEmpty() error {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != PrivateDir {
			return advice.Usage("%s has files that are not from an export (%s): name another folder", f.dir, e.Name())
		}
	}
	return nil
}

func (f *Folder) acquireLock() error {
	lock, err := f.root.OpenFile(lockName, os.O_CREATE|os.O_RDWR, 0o644) // refuses links that lead outside
	if err != nil {
		return err
	}
	if err := lock.Close(); err != nil {
		return err
	}
	f.lock = flock.New(filepath.Join(f.dir, filepath.FromSlash(lockName)))
	ok, err := f.lock.TryLock()
	if err == nil && !ok {
		err = fmt.Errorf("%s: another kumo process is exporting to this folder", f.dir)
	}
	return err
}

// Close unlocks the folder.
func (f *Folder) Close() error {
	err := f.root.Close()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Unlock())
	}
	return err
}

// DeclareFiles declares the files of the export. names calls add with each name, in any order. Files of earlier exports
// that are not among them are removed. It must be called before the first Put.
func (f *Folder) DeclareFiles(ctx context.Context, names func(add func(name string) error) error) (err error) {
	temp, err := os.MkdirTemp(f.temp, "kumo-export-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	sorter := extsort.New(extsort.Config{Dir: filepath.Join(temp, "sort"), Memory: 16 << 20})
	defer func() { err = errors.Join(err, sorter.Close()) }()
	if err := names(func(name string) error { return sorter.Add(0, []byte(name), []byte{declared}) }); err != nil {
		return err
	}
	if err := f.eachListed(func(name []byte) error { return sorter.Add(0, name, []byte{listed}) }); err != nil {
		return err
	}
	marked := filepath.Join(temp, "marked")
	if err := f.writeList(ctx, sorter, marked); err != nil { // from here on, all files are listed
		return err
	}
	_, err = store.EachLineOf(vfs.OS, marked, func(line []byte, _ int64) error {
		if line[0] == declared {
			return nil
		}
		return f.Remove(string(line[1:]))
	})
	if err != nil {
		return err
	}
	return f.rewrite(listName, func(w io.Writer) error {
		_, err := store.EachLineOf(vfs.OS, marked, func(line []byte, _ int64) error {
			if line[0] != declared {
				return nil
			}
			_, err := fmt.Fprintf(w, "%s\n", line[1:])
			return err
		})
		return err
	})
}

// The source of a name.
const (
	listed   = 'l' // only in the list of an earlier export
	declared = 'w' // in this export; sorts last if both have the name
)

// writeList lists all declared names, and writes them to the file marked, each after its source.
func (f *Folder) writeList(ctx context.Context, sorter *extsort.Sorter, marked string) error {
	return f.rewrite(listName, func(all io.Writer) (err error) {
		out, err := os.Create(marked)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, out.Close()) }()
		w := bufio.NewWriter(out)
		sorted, err := sorter.Sorted(0)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sorted.Close()) }()
		groups, failed := sorted.Groups()
		for name, froms := range groups {
			var last byte
			for from := range froms {
				last = from[0]
			}
			if _, err := fmt.Fprintf(all, "%s\n", name); err != nil {
				return err
			}
			if _, err := fmt.Fprintf(w, "%c%s\n", last, name); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		return errors.Join(failed(), w.Flush())
	})
}

// rewrite replaces a file durably with the output of fill.
func (f *Folder) rewrite(name string, fill func(io.Writer) error) error {
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if err := fill(w); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := errors.Join(w.Flush(), w.file.Sync()); err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// eachListed calls f with the names of an export's files.
func (f *Folder) eachListed(call func(name []byte) error) error {
	in, err := f.root.Open(listName)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = store.EachLine(in, func(name []byte, _ int64) error {
		if len(name) == 0 || !filepath.IsLocal(string(name)) {
			return nil // not a name that an export writes
		}
		return call(name)
	})
	return err
}

// Remove removes a declared file that an earlier export left, and folders that become empty.
func (f *Folder) Remove(name string) error {
	info, err := f.root.Lstat(name)
	switch {
	case isAbsent(err) || err == nil && info.IsDir():
		return nil // it was never written, or is something else now
	case err != nil:
		return err
	}
	if err := f.root.Remove(name); err != nil {
		return err
	}
	f.Removed++
	f.lastDir = ""
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if f.root.Remove(dir) != nil { // the folder is not empty
			return nil
		}
	}
	return nil
}

// isAbsent reports whether a file does not exist, also because its folder's path is a file.
func isAbsent(err error) bool { return errors.Is(err, fs.ErrNotExist) || isNotDir(err) }

// Put writes a whole file, unless it exists with the same contents.
func (f *Folder) Put(name string, data []byte) error {
	f.Bytes += int64(len(data))
	if f.hasContents(name, bytes.NewReader(data), int64(len(data))) {
		f.Unchanged++
		return nil
	}
	w, err := f.Create(name)
	if err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.Close(); err != nil {
		return err
	}
	f.Written++
	return nil
}

// hasContents reports whether a file has exactly these contents, which are size bytes long.
func (f *Folder) hasContents(name string, contents io.Reader, size int64) bool {
	info, err := f.root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() != size {
		return false
	}
	in, err := f.root.Open(name)
	if err != nil {
		return false
	}
	defer in.Close()
	room := int(min(size+1, 64<<10)) // one more, to detect the end
	x, y := make([]byte, room), make([]byte, room)
	for {
		n, errX := io.ReadFull(in, x)
		m, errY := io.ReadFull(contents, y)
		if n != m || !bytes.Equal(x[:n], y[:m]) {
			return false
		}
		if errX != nil || errY != nil {
			return isEnd(errX) && isEnd(errY)
		}
	}
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// A File is a file that is being written. It appears under its name with Close or Commit.
type File struct {
	*bufio.Writer
	folder *Folder
	file   *os.File // nil once closed or aborted
	name   string
	slot   int
}

// Create starts a file. At most maxOpenFiles can be open at once.
func (f *Folder) Create(name string) (*File, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Errorf("%q is not a valid file name in %s", name, f.dir)
	}
	if dir := path.Dir(name); dir != "." && dir != f.lastDir {
		if err := f.root.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("create %s in %s: %w", dir, f.dir, err)
		}
		f.lastDir = dir
	}
	slot := slices.Index(f.open[:], false)
	if slot < 0 {
		return nil, fmt.Errorf("%s: too many open files: %d", f.dir, maxOpenFiles)
	}
	w := &File{folder: f, name: name, slot: slot}
	if err := f.root.Remove(w.part()); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a process that was killed
		return nil, err
	}
	var err error
	if w.file, err = f.root.OpenFile(w.part(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644); err != nil {
		return nil, err
	}
	f.open[slot] = true
	var to io.Writer = w.file
	if f.Stream != nil && !strings.HasPrefix(name, PrivateDir+"/") {
		to = f.Stream
	}
	if f.WrapWriter != nil {
		to = f.WrapWriter(to)
	}
	w.Writer = bufio.NewWriterSize(to, 64<<10)
	return w, nil
}

// part returns the temporary name of the file.
func (w *File) part() string { return partName + strconv.Itoa(w.slot) }

// closePart closes the file under its temporary name.
func (w *File) closePart() error {
	file := w.file
	w.file, w.folder.open[w.slot] = nil, false
	return file.Close()
}

// Close makes the file appear under its name.
func (w *File) Close() error {
	if err := w.Flush(); err != nil {
		return errors.Join(err, w.Abort())
	}
	if err := w.closePart(); err != nil {
		return errors.Join(err, w.folder.root.Remove(w.part()))
	}
	if err := w.folder.root.Rename(w.part(), w.name); err != nil {
		return fmt.Errorf("%s in %s: %w", w.name, w.folder.dir, errors.Join(err, w.folder.root.Remove(w.part())))
	}
	return nil
}

// Commit is like Close, but leaves an existing file with the same contents unchanged.
func (w *File) Commit() error {
	if err := w.Flush(); err != nil {
		return errors.Join(err, w.Abort())
	}
	size, err := w.file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = w.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	w.folder.Bytes += size
	if w.folder.hasContents(w.name, w.file, size) {
		w.folder.Unchanged++
		return w.Abort()
	}
	w.folder.Written++
	return w.Close()
}

// Abort discards the file. It does nothing if w is nil, closed, committed or aborted.
func (w *File) Abort() error {
	if w == nil || w.file == nil {
		return nil
	}
	return errors.Join(w.closePart(), w.folder.root.Remove(w.part()))
}
