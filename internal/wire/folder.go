package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"kumo/internal/stats"
	"kumo/internal/vfs"
)

// ErrLocked is a folder that another kumo works on.
var ErrLocked = errors.New("another kumo is working on it")

// A folder is a crawl's place on disk, held by this process.
type folder struct {
	dir  string
	disk vfs.FS
	lock *flock.Flock
}

// openFolder makes and locks the crawl's folder and writes the settings there.
func openFolder(disk vfs.FS, j *Job) (*folder, error) {
	f := &folder{dir: j.Dir, disk: disk}
	if err := disk.MkdirAll(f.path("state")); err != nil {
		return nil, fmt.Errorf("make the crawl's folder: %w", err)
	}
	f.lock = flock.New(f.path("state", "lock"))
	switch locked, err := f.lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", j.Dir, err)
	case !locked:
		return nil, fmt.Errorf("%s: %w", j.Dir, ErrLocked)
	}
	if j.Fresh {
		if err := f.clear(); err != nil {
			return f, fmt.Errorf("forget the crawl in %s: %w", j.Dir, err)
		}
	}
	return f, writeSettings(f.path(settingsName), j.Settings)
}

func (f *folder) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// clear removes what a crawl makes, and nothing else.
func (f *folder) clear() error {
	for _, name := range []string{"state/journal", "pages.jsonl", "crawl.log", "skipped.jsonl", "report.json", "index.cdxj"} {
		if err := os.Remove(f.path(filepath.FromSlash(name))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(f.path("warc"))
}

func (f *folder) writeReport(r *stats.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(f.path("report.json"), append(data, '\n'))
}

// replaceFile writes a file so that a reader sees the old content or the new, never a part.
func replaceFile(name string, data []byte) error {
	tmp := name + ".tmp"
	if err := os.WriteFile(tmp, data, 0o644); err != nil {
		return err
	}
	return vfs.OS.Rename(tmp, name)
}

func (f *folder) close() error { return f.lock.Unlock() }
