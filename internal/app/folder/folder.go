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

// A Folder is a crawl's place on disk, held by this process.
type Folder struct {
	Dir   string
	Disk  vfs.FS
	gate  *flock.Flock
	lock  *flock.Flock
	index *flock.Flock
}

// At is the folder dir, which is neither made nor locked.
func At(dir string, disk vfs.FS) *Folder { return &Folder{Dir: dir, Disk: disk} }

// Options say how a folder is opened.
type Options struct {
	Exclusive bool        // nobody else puts files there: a folder that has some, and no crawl, is refused
	Fresh     bool        // an earlier crawl in the folder is set aside, into a folder in it
	Discard   bool        // with Fresh: it is removed
	Now       time.Time   // after which that folder is named
	Warn      func(error) // is told what the crawl waits for, and where the earlier one is
}

// Open makes and locks a crawl's folder. It waits for who looks into it. The caller closes it.
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
		return nil, fmt.Errorf("make the crawl's folder: %w", err)
	}
	if err := f.Lock(ctx, o.Warn); err != nil {
		return nil, err
	}
	if err := inspect.RemoveEndpoint(f.Path(EndpointName)); err != nil { // one that was killed has left it
		return nil, errors.Join(err, f.Close())
	}
	switch {
	case o.Fresh && o.Discard:
		if err := f.clear(); err != nil {
			return f, fmt.Errorf("forget the crawl in %s: %w", f.Dir, err)
		}
	case o.Fresh:
		to, err := f.moveCrawlAside(o.Now)
		if err != nil {
			return f, fmt.Errorf("set the crawl in %s aside: %w", f.Dir, err)
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

// EndpointName is the file that says where a crawl that runs can be asked.
var EndpointName = filepath.Join("state", "endpoint")

// Path is the path of what lies in the folder.
func (f *Folder) Path(elem ...string) string {
	return filepath.Join(append([]string{f.Dir}, elem...)...)
}

// UIName is the file that says where a crawl's web page is served, and with which token.
var UIName = filepath.Join("state", "ui.json")

// OpenName is the file that kumo open has a browser open: it leads to the web page, with the token.
var OpenName = filepath.Join("state", "open.html")

// NodeFile is the file in "state" that says which node of a cluster the folder belongs to.
const NodeFile = "node.json"

// IsNodes reports whether the folder belongs to a node of a cluster.
func (f *Folder) IsNodes() bool {
	_, err := f.Disk.Size(f.Path("state", NodeFile))
	return err == nil
}

// IndexDir is the folder of the full-text index. It can be made again of the rest.
const IndexDir = "index"

// Outputs are the files of a crawl besides those in warc and state.
var Outputs = []string{"pages.jsonl", "crawl.log", "skipped.jsonl", "text.jsonl", "fields.jsonl", "report.json",
	"index.cdxj", "external.jsonl"}

// ErrForeign is a folder with files that a crawl would write over, and no crawl.
var ErrForeign = errors.New("holds files that are not a crawl's: name another folder with --out")

// IsCrawl reports whether there is a crawl in the folder.
func (f *Folder) IsCrawl() bool { return f.HasJournal() || settings.IsFile(f.Path(settings.Name)) }

// HasJournal reports whether the folder has a journal, an older kumo's, in one file, among them. A folder without
// segments is none.
func (f *Folder) HasJournal() bool {
	name := f.Path("state", "journal")
	segments, err := f.Disk.List(name)
	if err != nil {
		_, err = f.Disk.Size(name)
		return err == nil
	}
	return len(segments) > 0
}

// Prepare makes sure that nothing in the folder is written over but by wish.
func (f *Folder) Prepare() error {
	if !f.HasJournal() && f.HasOutputs() {
		return advice.With(advice.Usage("the crawl in %s has lost its state: there is no journal", f.Dir),
			RepairHint(f.Dir)+"; or begin again with --fresh, which sets it aside, or name another folder with --out")
	}
	return nil
}

// A folder in a crawl's has an earlier crawl that was set aside: its name begins so, and ends otherwise until all is
// there.
const (
	earlierPrefix = "earlier-"
	partSuffix    = ".part"
)

// moveCrawlAside moves the crawl in the folder into one in it, and returns that: "" where there is none. The state goes
// first: without it the rest is no crawl that goes on. One that was not moved to its end is, by the next.
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

// stateFilesExcept are what lies in the folder of the state, but for one file and what stays where it is.
func (f *Folder) stateFilesExcept(one string) (names []string, err error) {
	entries, err := os.ReadDir(f.Path("state"))
	for _, e := range entries {
		if !slices.Contains([]string{one, LockName, GateName, filepath.Base(FormatName)}, e.Name()) {
			names = append(names, filepath.Join("state", e.Name()))
		}
	}
	return names, err
}

// move moves what there is of files and folders into another folder, durably.
func (f *Folder) move(to string, names []string) error {
	for _, name := range names {
		if err := os.Rename(f.Path(name), filepath.Join(to, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(f.Disk.SyncDir(filepath.Join(to, "state")), f.Disk.SyncDir(to), f.Disk.SyncDir(f.Path("state")),
		f.Disk.SyncDir(f.Dir))
}

// foreignFile is what lies in the folder that no crawl puts there; "" if nothing does, but for what is hidden.
func (f *Folder) foreignFile() string {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return "" // it is not there, or who opens it says so
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

// clear removes what a crawl makes, and nothing else. The state goes first: without it the rest is no crawl that goes
// on.
func (f *Folder) clear() error {
	if err := f.removeAll(f.stateFiles()); err != nil {
		return err
	}
	if err := f.Disk.SyncDir(f.Path("state")); err != nil { // none of it may come back when the rest is gone
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

// stateFiles are the files and folders of the state, each folder after what is in it.
func (f *Folder) stateFiles() []string {
	all := []string{filepath.Join("state", "deferred"), filepath.Join("state", "roots"),
		filepath.Join("state", settings.Name), statefile.RobotsAnswersName}
	for _, room := range []string{"frontier", "seen", "digests", "robots", "rank", "sinks", "journal"} {
		dir := filepath.Join("state", room)
		names, _ := f.Disk.List(f.Path(dir)) // where it is no folder, it goes as a file
		for _, name := range names {
			all = append(all, filepath.Join(dir, name))
		}
		all = append(all, dir)
	}
	return all
}

// WriteReport writes what a run has come to.
func (f *Folder) WriteReport(r *stats.Report) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return f.Replace("report.json", append(data, '\n'))
}

// WriteSettings keeps the crawl's settings.
func (f *Folder) WriteSettings(all []settings.Setting) error {
	data, err := settings.Encode(all)
	if err != nil {
		return err
	}
	return errors.Join(f.Replace(settings.Name, data), f.Replace(filepath.Join("state", settings.Name),
		settings.AppendChecksum(data)))
}

// Replace writes one of the folder's files as a whole.
func (f *Folder) Replace(name string, data []byte) error {
	return vfs.Replace(f.Disk, f.Path(name), data)
}

// MoveAside moves what a node had that lost its place out of the way, into a folder in this one: its records are good,
// and stay there; its state is worth nothing any more. Who the node was goes last: as long as that is there, the next
// process finds out again that it is lost.
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
		return fmt.Errorf("put aside what a node had that lost its place: %w", err)
	}
	return At(to, f.Disk).WriteFormat()
}

// DefaultDir is where a crawl lies unless the user says otherwise.
func DefaultDir(crawl string) string { return filepath.Join("crawls", crawl) }

// NoCrawlError is the error of a folder that was named, and has no crawl.
func NoCrawlError(dir string) error { return advice.Usage("%s: there is no crawl", dir) }

// ReadSettings reads the settings of the crawl in dir; none when there is no crawl.
func ReadSettings(dir string) ([]settings.Setting, error) {
	if err := CheckFormat(dir); err != nil {
		return nil, err
	}
	all, err := settings.Read(filepath.Join(dir, settings.Name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, advice.Usage("%s is a file, and a crawl's folder is wanted", dir)
	}
	if errors.Is(err, syscall.ENAMETOOLONG) {
		return nil, advice.Usage("%s: the name is too long for a folder", dir)
	}
	return all, WithRepairHint(err, dir)
}

// WithRepairHint adds to an error from a crawl's folder that a repair can help.
func WithRepairHint(err error, dir string) error {
	if err == nil {
		return nil
	}
	return advice.With(err, RepairHint(dir))
}

// RepairHint is what to do about a folder from which a crawl cannot go on.
func RepairHint(dir string) string {
	return fmt.Sprintf("kumo repair %s goes on from what is whole there, and says what is lost (--dry-run: says it, "+
		"and changes nothing)", dir)
}
