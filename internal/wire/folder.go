package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"kumo/internal/crawl"
	"kumo/internal/look"
	"kumo/internal/stats"
	"kumo/internal/vfs"
)

// A folder is a crawl's place on disk, held by this process.
type folder struct {
	dir  string
	disk vfs.FS
	gate *flock.Flock
	lock *flock.Flock
}

// openFolder makes and locks the crawl's folder. It waits for who looks into it.
func openFolder(ctx context.Context, disk vfs.FS, j *Job) (*folder, error) {
	f := &folder{dir: j.Dir, disk: disk}
	if !f.isCrawl() && f.hasOutputs() {
		return nil, &JobError{fmt.Errorf("%s %w", f.dir, ErrForeign)}
	}
	if err := disk.MkdirAll(f.path("state")); err != nil {
		return nil, fmt.Errorf("make the crawl's folder: %w", err)
	}
	if err := f.hold(ctx, j.Warn); err != nil {
		return nil, err
	}
	if err := look.Withdraw(f.path(deskName)); err != nil { // one that was killed has left it
		return nil, errors.Join(err, f.close())
	}
	return f, f.prepare(j.Fresh)
}

// deskName is the file that says where a crawl that runs can be asked.
var deskName = filepath.Join("state", "desk")

func (f *folder) path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// outputs are the files of a crawl besides those in warc and state.
var outputs = []string{"pages.jsonl", "crawl.log", "skipped.jsonl", "text.jsonl", "report.json", "index.cdxj"}

// ErrForeign is a folder with files that a crawl would write over, and no crawl.
var ErrForeign = errors.New("holds files that are not a crawl's: name another folder with --out")

func (f *folder) isCrawl() bool { return f.hasJournal() || isSettings(f.path(settingsName)) }

// hasJournal reports whether the folder has a journal, an older kumo's, in one file, among them. A folder without segments is none.
func (f *folder) hasJournal() bool {
	name := f.path("state", "journal")
	segments, err := f.disk.List(name)
	if err != nil {
		_, err = f.disk.Size(name)
		return err == nil
	}
	return len(segments) > 0
}

// prepare makes sure that nothing in the folder is written over but by wish.
func (f *folder) prepare(fresh bool) error {
	switch {
	case fresh:
		if err := f.clear(); err != nil {
			return fmt.Errorf("forget the crawl in %s: %w", f.dir, err)
		}
	case !f.hasJournal() && f.hasOutputs():
		return AdviseTo(&JobError{fmt.Errorf("the crawl in %s has lost its state: there is no journal", f.dir)},
			toRepair(f.dir)+"; or begin again with --fresh, or name another folder with --out")
	}
	return nil
}

func (f *folder) hasOutputs() bool {
	warcs, _ := f.disk.List(f.path("warc"))
	return len(warcs) > 0 || slices.ContainsFunc(outputs, func(name string) bool {
		size, err := f.disk.Size(f.path(name))
		return err == nil && size > 0
	})
}

// clear removes what a crawl makes, and nothing else. The state goes first: without it the rest is no crawl that goes on.
func (f *folder) clear() error {
	if err := f.removeAll(f.stateFiles()); err != nil {
		return err
	}
	if err := f.disk.SyncDir(f.path("state")); err != nil { // none of it may come back when the rest is gone
		return err
	}
	doomed := slices.Clone(outputs)
	files, err := f.disk.List(f.path("warc"))
	if err != nil {
		return err
	}
	for _, name := range files {
		if strings.Contains(name, ".warc") || strings.Contains(name, ".cdxj") {
			doomed = append(doomed, filepath.Join("warc", name))
		}
	}
	return f.removeAll(doomed)
}

func (f *folder) removeAll(names []string) error {
	for _, name := range names {
		if err := f.disk.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// stateFiles are the files and folders of the state, each folder after what is in it.
func (f *folder) stateFiles() []string {
	all := []string{filepath.Join("state", "asides"), filepath.Join("state", "roots"), filepath.Join("state", settingsName), crawl.AnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "journal"} {
		dir := filepath.Join("state", room)
		names, _ := f.disk.List(f.path(dir)) // where it is no folder, it goes as a file
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		all = append(all, dir)
	}
	return all
}

func (f *folder) writeReport(r *stats.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return f.replace("report.json", append(data, '\n'))
}

func (f *folder) writeSettings(settings []Setting) error {
	data, err := settingsFile(settings)
	if err != nil {
		return err
	}
	return errors.Join(f.replace(settingsName, data), f.keepSettings(data))
}

// replace writes a file so that a reader sees the old content or the new, never a part, whatever happens.
func (f *folder) replace(name string, data []byte) error {
	tmp := f.path(name + ".tmp")
	if err := vfs.CutBack(f.disk, tmp, 0); err != nil {
		return err
	}
	file, err := f.disk.Append(tmp)
	if err != nil {
		return err
	}
	if _, err = file.Write(data); err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, f.disk.Remove(tmp))
	}
	return f.disk.Rename(tmp, f.path(name))
}
