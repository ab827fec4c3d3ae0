package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"kumo/internal/crawl"
	"kumo/internal/inspect"
	"kumo/internal/stats"
	"kumo/internal/vfs"
)

// A Folder is a crawl's place on disk, held by this process.
type Folder struct {
	dir  string
	disk vfs.FS
	gate *flock.Flock
	lock *flock.Flock
}

// OpenFolder makes and locks the crawl's folder. It waits for who looks into it.
func OpenFolder(ctx context.Context, disk vfs.FS, j *Job) (*Folder, error) {
	f := &Folder{dir: j.Dir, disk: disk}
	if !f.isCrawl() && f.hasOutputs() {
		return nil, &JobError{fmt.Errorf("%s %w", f.dir, ErrForeign)}
	}
	if err := disk.MkdirAll(f.Path("state")); err != nil {
		return nil, fmt.Errorf("make the crawl's folder: %w", err)
	}
	if err := f.hold(ctx, j.Warn); err != nil {
		return nil, err
	}
	if err := inspect.RemoveEndpoint(f.Path(endpointName)); err != nil { // one that was killed has left it
		return nil, errors.Join(err, f.Close())
	}
	return f, f.prepare(j.Fresh)
}

// endpointName is the file that says where a crawl that runs can be asked.
var endpointName = filepath.Join("state", "endpoint")

// Path is the path of what lies in the folder.
func (f *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.dir}, elem...)...)
}

// NodeFile is the file in "state" that says which node of a cluster the folder belongs to.
const NodeFile = "node.json"

// isNodes reports whether the folder belongs to a node of a cluster.
func (f *Folder) isNodes() bool {
	_, err := f.disk.Size(f.Path("state", NodeFile))
	return err == nil
}

// outputs are the files of a crawl besides those in warc and state.
var outputs = []string{"pages.jsonl", "crawl.log", "skipped.jsonl", "text.jsonl", "report.json", "index.cdxj"}

// ErrForeign is a folder with files that a crawl would write over, and no crawl.
var ErrForeign = errors.New("holds files that are not a crawl's: name another folder with --out")

func (f *Folder) isCrawl() bool { return f.HasJournal() || isSettings(f.Path(settingsName)) }

// HasJournal reports whether the folder has a journal, an older kumo's, in one file, among them. A folder without segments is none.
func (f *Folder) HasJournal() bool {
	name := f.Path("state", "journal")
	segments, err := f.disk.List(name)
	if err != nil {
		_, err = f.disk.Size(name)
		return err == nil
	}
	return len(segments) > 0
}

// prepare makes sure that nothing in the folder is written over but by wish.
func (f *Folder) prepare(fresh bool) error {
	switch {
	case fresh:
		if err := f.clear(); err != nil {
			return fmt.Errorf("forget the crawl in %s: %w", f.dir, err)
		}
	case !f.HasJournal() && f.hasOutputs():
		return AdviseTo(&JobError{fmt.Errorf("the crawl in %s has lost its state: there is no journal", f.dir)},
			toRepair(f.dir)+"; or begin again with --fresh, or name another folder with --out")
	}
	return nil
}

func (f *Folder) hasOutputs() bool {
	warcs, _ := f.disk.List(f.Path("warc"))
	return len(warcs) > 0 || slices.ContainsFunc(outputs, func(name string) bool {
		size, err := f.disk.Size(f.Path(name))
		return err == nil && size > 0
	})
}

// clear removes what a crawl makes, and nothing else. The state goes first: without it the rest is no crawl that goes on.
func (f *Folder) clear() error {
	if err := f.removeAll(f.stateFiles()); err != nil {
		return err
	}
	if err := f.disk.SyncDir(f.Path("state")); err != nil { // none of it may come back when the rest is gone
		return err
	}
	doomed := slices.Clone(outputs)
	files, err := f.disk.List(f.Path("warc"))
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

func (f *Folder) removeAll(names []string) error {
	for _, name := range names {
		if err := f.disk.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// stateFiles are the files and folders of the state, each folder after what is in it.
func (f *Folder) stateFiles() []string {
	all := []string{filepath.Join("state", "asides"), filepath.Join("state", "roots"), filepath.Join("state", settingsName), crawl.AnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "journal"} {
		dir := filepath.Join("state", room)
		names, _ := f.disk.List(f.Path(dir)) // where it is no folder, it goes as a file
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		all = append(all, dir)
	}
	return all
}

func (f *Folder) writeReport(r *stats.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return f.replace("report.json", append(data, '\n'))
}

// WriteSettings keeps the crawl's settings.
func (f *Folder) WriteSettings(settings []Setting) error {
	data, err := settingsFile(settings)
	if err != nil {
		return err
	}
	return errors.Join(f.replace(settingsName, data), f.keepSettings(data))
}

// replace writes one of the folder's files as a whole.
func (f *Folder) replace(name string, data []byte) error {
	return vfs.Replace(f.disk, f.Path(name), data)
}

// PutAside moves what a node had that lost its place out of the way, into a folder in this one: its records are good, and stay there; its
// state is worth nothing any more. Who the node was goes last: as long as that is there, the next process finds out again that it is lost.
func (f *Folder) PutAside(name string) error {
	to := f.Path(name)
	if err := f.disk.MkdirAll(filepath.Join(to, "state")); err != nil {
		return err
	}
	names := slices.Concat(outputs, []string{"warc", settingsName})
	entries, err := os.ReadDir(f.Path("state"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != lockName && e.Name() != gateName && e.Name() != NodeFile {
			names = append(names, filepath.Join("state", e.Name()))
		}
	}
	for _, name := range append(names, filepath.Join("state", NodeFile)) {
		if err := os.Rename(f.Path(name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("put aside what a node had that lost its place: %w", err)
		}
	}
	return errors.Join(f.disk.SyncDir(filepath.Join(to, "state")), f.disk.SyncDir(to), f.disk.SyncDir(f.Path("state")), f.disk.SyncDir(f.dir))
}
