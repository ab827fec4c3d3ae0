// Package folder manages a crawl's folder on disk: its file names, and the locks between the processes that use it.
package folder

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
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"kumo/internal/app/inspect"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/statefile"
)

// A Folder is a crawl's folder on disk, which this process may have locked.
type Folder struct {
	Dir   string
	Disk  vfs.FS
	gate  *flock.Flock
	lock  *flock.Flock
	index *flock.Flock
}

// At returns the folder dir without creating or locking it.
func At(dir string, disk vfs.FS) *Folder { return &Folder{Dir: dir, Disk: disk} }

// Options control how a folder is opened.
type Options struct {
	Exclusive bool        // reject a folder that has other files and no crawl
	Fresh     bool        // move an earlier crawl in the folder into a subfolder
	Discard   bool        // with Fresh: remove it instead
	Now       time.Time   // names the subfolder
	Warn      func(error) // receives messages about waiting, and the place of the earlier crawl
}

// Open creates and locks a crawl's folder. It waits for readers of the folder. The caller closes it.
func Open(ctx context.Context, disk vfs.FS, dir string, o Options) (*Folder, error) {
	if err := CheckFormat(dir); err != nil {
		return nil, err
	}
	f := At(dir, disk)
	if !f.IsCrawl() && f.HasOutputs() {
		return nil, advice.Usage("%s %w", f.Dir, ErrForeign)
	}
	if name := f.foreignFile(); o.Exclusive && name != "" && !f.IsCrawl() {
		return nil, advice.Usage("%s %w (%s)", f.Dir, ErrForeign, name)
	}
	if err := disk.MkdirAll(f.Path("state")); err != nil {
		return nil, fmt.Errorf("create the crawl's folder: %w", err)
	}
	if err := f.Lock(ctx, o.Warn); err != nil {
		return nil, err
	}
	if err := inspect.RemoveEndpoint(f.Path(EndpointName)); err != nil { // left by a process that was killed
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case o.Fresh && o.Discard:
		if err := f.clear(); err != nil {
			return f, fmt.Errorf("remove the crawl in %s: %w", f.Dir, err)
		}
	case o.Fresh:
		to, err := f.moveCrawlAside(o.Now)
		if err != nil {
			return f, fmt.Errorf("move the crawl in %s aside: %w", f.Dir, err)
		}
		if to != "" {
			o.Warn(fmt.Errorf("the crawl that was here is set aside in %s, whole: it can be continued there, or removed", to))
		}
	}
	if err := f.Prepare(); err != nil {
		return f, err
	}
	return f, f.WriteFormat()
}

// EndpointName is the file with the address at which a running crawl answers queries.
var EndpointName = filepath.Join("state", "endpoint")

// Path returns the path of a file in the folder.
func (f *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.Dir}, elem...)...)
}

// UIName is the file with the address and token of a crawl's web page.
var UIName = filepath.Join("state", "ui.json")

// OpenName is the file that kumo open shows in a browser. It redirects to the web page with the token.
var OpenName = filepath.Join("state", "open.html")

// NodeFile is the file in "state" with the identity of the cluster node that the folder belongs to.
const NodeFile = "node.json"

// IsNodes reports whether the folder belongs to a node of a cluster.
func (f *Folder) IsNodes() bool {
	_, err := f.Disk.Size(f.Path("state", NodeFile))
	return err == nil
}

// IndexDir is the folder of the full-text index, which can be rebuilt from the other files.
const IndexDir = "index"

// Outputs are the files of a crawl besides those in warc and state.
var Outputs = []string{"pages.jsonl", "crawl.log", "skipped.jsonl", "text.jsonl", "fields.jsonl", "report.json",
	"index.cdxj", "external.jsonl"}

// ErrForeign means that a folder has no crawl, and files that a crawl would overwrite.
var ErrForeign = errors.New("has files that do not belong to a crawl: name another folder with --out")

// IsCrawl reports whether there is a crawl in the folder.
func (f *Folder) IsCrawl() bool { return f.HasJournal() || settings.IsFile(f.Path(settings.Name)) }

// HasJournal reports whether the folder has a journal, possibly in the single file of an older kumo. A journal folder
// without segments does not count.
func (f *Folder) HasJournal() bool {
	name := f.Path("state", "journal")
	segments, err := f.Disk.List(name)
	if err != nil {
		_, err = f.Disk.Size(name)
		return err == nil
	}
	return len(segments) > 0
}

// Prepare returns an error if the folder has record files without a state, so that they are not overwritten by
// accident.
func (f *Folder) Prepare() error {
	if !f.HasJournal() && f.HasOutputs() {
		return advice.With(advice.Usage("the crawl in %s has lost its state: there is no journal", f.Dir),
			RepairHint(f.Dir)+"; or start again with --fresh, which moves it aside, or name another folder with --out")
	}
	return nil
}

// The name of a subfolder with an earlier crawl begins with earlierPrefix. It ends with partSuffix until all files have
// been moved.
const (
	earlierPrefix = "earlier-"
	partSuffix    = ".part"
)

// moveCrawlAside moves the crawl in the folder into a subfolder, whose name it returns; "" if there is no crawl. The
// journal goes first: without it, the rest cannot be resumed. An interrupted move is completed by the next call.
func (f *Folder) moveCrawlAside(now time.Time) (string, error) {
	left, err := filepath.Glob(f.Path(earlierPrefix + "*" + partSuffix))
	if err != nil || len(left) == 0 && !f.IsCrawl() && !f.HasOutputs() {
		return "", err
	}
	to := f.Path(earlierPrefix + now.UTC().Format("20060102-150405"))
	for n := 2; ; n++ {
		if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
			break
		}
		to = f.Path(fmt.Sprintf("%s%s-%d", earlierPrefix, now.UTC().Format("20060102-150405"), n))
	}
	part := to + partSuffix
	if len(left) > 0 {
		part = left[0]
		to = strings.TrimSuffix(part, partSuffix)
	}
	if err := f.Disk.MkdirAll(filepath.Join(part, "state")); err != nil {
		return "", err
	}
	names, err := f.stateFilesExcept("journal")
	if err != nil {
		return "", err
	}
	names = append([]string{filepath.Join("state", "journal")}, names...)
	if err := f.move(part, slices.Concat(names, Outputs, []string{"warc", IndexDir, settings.Name})); err != nil {
		return "", err
	}
	if err := At(part, f.Disk).WriteFormat(); err != nil {
		return "", err
	}
	if err := f.Disk.Rename(part, to); err != nil {
		return "", err
	}
	return to, f.Disk.SyncDir(f.Dir)
}

// stateFilesExcept returns the files in the state folder except one, and except those that never move.
func (f *Folder) stateFilesExcept(one string) (names []string, err error) {
	entries, err := os.ReadDir(f.Path("state"))
	for _, e := range entries {
		if !slices.Contains([]string{one, LockName, GateName, filepath.Base(FormatName)}, e.Name()) {
			names = append(names, filepath.Join("state", e.Name()))
		}
	}
	return names, err
}

// move moves the existing files among names into another folder, durably.
func (f *Folder) move(to string, names []string) error {
	for _, name := range names {
		if err := os.Rename(f.Path(name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(f.Disk.SyncDir(filepath.Join(to, "state")), f.Disk.SyncDir(to), f.Disk.SyncDir(f.Path("state")),
		f.Disk.SyncDir(f.Dir))
}

// foreignFile returns the name of a file in the folder that no crawl creates; "" if there is none. Hidden files do not
// count.
func (f *Folder) foreignFile() string {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return "" // it does not exist, or opening it returns the error
	}
	own := append([]string{"warc", "state", IndexDir, settings.Name, "lost+found"}, Outputs...)
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "earlier-") && !slices.Contains(own, name) {
			return name
		}
	}
	return ""
}

// HasOutputs reports whether there are record files.
func (f *Folder) HasOutputs() bool {
	warcs, _ := f.Disk.List(f.Path("warc"))
	return len(warcs) > 0 || slices.ContainsFunc(Outputs, func(name string) bool {
		size, err := f.Disk.Size(f.Path(name))
		return err == nil && size > 0
	})
}

// clear removes the files of a crawl, and nothing else. The state goes first: without it, the rest cannot be resumed.
func (f *Folder) clear() error {
	if err := f.removeAll(f.stateFiles()); err != nil {
		return err
	}
	// no state file may reappear after a crash when the rest is gone
	if err := f.Disk.SyncDir(f.Path("state")); err != nil {
		return err
	}
	doomed := slices.Clone(Outputs)
	files, err := f.Disk.List(f.Path("warc"))
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
		if err := f.Disk.Remove(f.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// stateFiles returns the files and folders of the state, each folder after its contents.
func (f *Folder) stateFiles() []string {
	all := []string{filepath.Join("state", "deferred"), filepath.Join("state", "roots"),
		filepath.Join("state", settings.Name), statefile.RobotsAnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "rank", "sinks", "journal"} {
		dir := filepath.Join("state", room)
		names, _ := f.Disk.List(f.Path(dir)) // if it is a file, it is removed as one
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		all = append(all, dir)
	}
	return all
}

// WriteReport writes the report of a run.
func (f *Folder) WriteReport(r *stats.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return f.Replace("report.json", append(data, '\n'))
}

// WriteSettings writes the crawl's settings and their copy in the state folder.
func (f *Folder) WriteSettings(all []settings.Setting) error {
	data, err := settings.Encode(all)
	if err != nil {
		return err
	}
	return errors.Join(f.Replace(settings.Name, data), f.Replace(filepath.Join("state", settings.Name),
		settings.AppendChecksum(data)))
}

// Replace atomically replaces a file in the folder.
func (f *Folder) Replace(name string, data []byte) error {
	return vfs.Replace(f.Disk, f.Path(name), data)
}

// MoveAside moves the files of a node that was declared dead into a subfolder. Its records are valid and remain there;
// its state is useless. The node's identity goes last: until then, the next process detects the loss again.
func (f *Folder) MoveAside(name string) error {
	to := f.Path(name)
	if err := f.Disk.MkdirAll(filepath.Join(to, "state")); err != nil {
		return err
	}
	state, err := f.stateFilesExcept(NodeFile)
	if err != nil {
		return err
	}
	names := slices.Concat(Outputs, []string{"warc", IndexDir, settings.Name}, state)
	if err := f.move(to, append(names, filepath.Join("state", NodeFile))); err != nil {
		return fmt.Errorf("move the files of the lost node aside: %w", err)
	}
	return At(to, f.Disk).WriteFormat()
}

// DefaultDir returns a crawl's default folder.
func DefaultDir(crawl string) string { return filepath.Join("crawls", crawl) }

// NoCrawlError returns the error for a named folder that has no crawl.
func NoCrawlError(dir string) error { return advice.Usage("%s: there is no crawl", dir) }

// ReadSettings reads the settings of the crawl in dir; none if there is no crawl.
func ReadSettings(dir string) ([]settings.Setting, error) {
	if err := CheckFormat(dir); err != nil {
		return nil, err
	}
	all, err := settings.Read(filepath.Join(dir, settings.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, advice.Usage("%s is a file: name a folder", dir)
	}
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return nil, advice.Usage("%s: the name is too long for a folder", dir)
	}
	return all, WithRepairHint(err, dir)
}

// WithRepairHint adds advice on kumo repair to an error from a crawl's folder.
func WithRepairHint(err error, dir string) error {
	if err == nil {
		return nil
	}
	return advice.With(err, RepairHint(dir))
}

// RepairHint returns advice for a folder from which a crawl cannot resume.
func RepairHint(dir string) string {
	return fmt.Sprintf("kumo repair %s rebuilds the crawl from the intact data and reports any loss (--dry-run: only "+
		"reports it)", dir)
}
