// Package uploads sets up the upload of a crawl's record files to a storage location, and the reading of uploaded
// crawls. It is separate from wire, so that programs that import kumo do not link the dependencies of storage
// locations.
package uploads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/folder"
	"kumo/internal/app/job"
	"kumo/internal/app/wire/places"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/archive/upload"
	"kumo/internal/base/advice"
	"kumo/internal/base/settings"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/store"
)

func openPlace(ctx context.Context, name string) (place.Place, error) {
	p, late, err := reachPlace(ctx, name)
	if err == nil && late != nil {
		p, err = nil, errors.Join(late, closePlace(p))
	}
	return p, err
}

// reachPlace opens a storage location by its URL. late is the error if it is temporarily unreachable; err is a
// permanent one.
func reachPlace(ctx context.Context, name string) (p place.Place, late, err error) {
	if p, err = makePlace(ctx, name); err != nil {
		return nil, nil, err
	}
	if late, err = probe(ctx, p); err != nil {
		return nil, nil, errors.Join(err, closePlace(p))
	}
	return p, late, nil
}

// makePlace opens a storage location without contacting it.
func makePlace(ctx context.Context, name string) (place.Place, error) {
	if u, err := url.Parse(name); err == nil && u.User != nil {
		return nil, advice.Usage("place %s: give a URL without a name and password, because it is written to files",
			u.Redacted())
	}
	return places.OpenLazy(ctx, name)
}

// probe checks whether a location is reachable. late is a temporary error.
func probe(ctx context.Context, p place.Place) (late, err error) {
	err = place.Probe(ctx, p)
	if place.IsTransient(err) && ctx.Err() == nil {
		return err, nil
	}
	return nil, err
}

// Check returns an error if a location cannot be opened. late is the error if it is temporarily unreachable.
func Check(ctx context.Context, name string) (late, err error) {
	p, late, err := reachPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	return late, closePlace(p)
}

// Child returns the URL of a location below another one, with the same options.
func Child(placeURL, name string) string {
	at, options, has := strings.Cut(placeURL, "?")
	if at = strings.TrimRight(at, "/") + "/" + name; has {
		at += "?" + options
	}
	return at
}

// FolderFor returns the default local folder of a crawl that is uploaded.
func FolderFor(placeURL string) string {
	name, _, _ := strings.Cut(placeURL, "?")
	return folder.DefaultDir(strings.Trim(job.SafeName(name), "-."))
}

// Parent returns the URL of the location above another one.
func Parent(placeURL string) string {
	at, options, has := strings.Cut(placeURL, "?")
	if at = at[:max(strings.LastIndexByte(at, '/'), 0)]; has {
		at += "?" + options
	}
	return at
}

// PlaceOf returns the URL of the location to which the crawl in dir is uploaded; "" if there is none.
func PlaceOf(dir string) (string, error) {
	l, err := away.ReadLink(dir)
	if l == nil || err != nil {
		return "", err
	}
	return l.URL, nil
}

// A Config configures an upload.
type Config struct {
	Place         string              // URL of the storage location
	KeepLocal     bool                // keep uploaded WARC files in the folder
	Wait          time.Duration       // maximum wait for a failing location after the run
	Failed, Works func(stats.Uploads) // called when the location fails, and works again
	// called when the node's log is truncated to the part after the uploaded state; may be nil
	Cut func(upload.TrimStats)
}

// An Upload uploads the record files of one run of a crawl.
type Upload struct {
	cfg   upload.Config
	place place.Place // for reading
	wait  time.Duration
	cut   func(upload.TrimStats)
	up    atomic.Pointer[upload.Uploader] // nil until the crawl is opened
	// Uploads the node's state; nil: it is not uploaded.
	states *upload.States

	started      bool                    // Start was called
	stateUploads sync.WaitGroup          // goroutine that uploads states
	stopStates   context.CancelFunc      // ends it
	stop         context.CancelCauseFunc // ends the upload; nil if it is not running
	done         chan error              // result of the upload
}

// New opens the storage location and checks that it can be used for the job's crawl. It changes nothing. If the
// location is temporarily unreachable, Unreachable returns the reason, and the check is made later.
func New(ctx context.Context, j *job.Job, cfg Config) (*Upload, error) {
	p, err := makePlace(ctx, cfg.Place)
	if err != nil {
		return nil, err
	}
	u := &Upload{place: p, wait: cfg.Wait, cut: cfg.Cut, cfg: upload.Config{Place: p, URL: cfg.Place, Dir: j.Dir,
		Crawl: j.Name, Grow: growingFiles(), First: settings.Name, Fresh: j.Fresh, RemoveUploaded: !cfg.KeepLocal,
		Failed: cfg.Failed, Recovered: cfg.Works}}
	if err := u.check(ctx); err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	j.Upload = &job.Upload{Overlay: func(disk vfs.FS) (vfs.FS, error) { return u.overlay(ctx, disk) },
		Closed: func() { u.up.Load().FileClosed() }, Durable: func(marks []store.Mark) { u.up.Load().Durable(marks) },
		Status: u.Status}
	return u, nil
}

// check checks that the location can be used for the crawl: by the data in the folder, and that in the location.
func (u *Upload) check(ctx context.Context) error {
	if isLocalFolder(u.place, u.cfg.Dir) {
		return advice.Usage("the place %s is the crawl's own folder: name another folder with --work", u.place.URL())
	}
	err := upload.CheckHere(u.cfg)
	if err == nil {
		u.cfg.Unreachable, err = probe(ctx, u.place)
	}
	if err != nil || u.cfg.Unreachable != nil {
		return err
	}
	soon := u.cfg
	soon.Place = place.FailFast(u.place)
	if err = upload.Check(ctx, soon); place.IsTransient(err) && ctx.Err() == nil {
		u.cfg.Unreachable, err = err, nil
	}
	return err
}

// isLocalFolder reports whether a location is the crawl's own folder: its files would be mistaken for uploaded copies.
func isLocalFolder(p place.Place, dir string) bool {
	f, is := p.(*file.Place)
	if !is {
		return false
	}
	if abs, err := filepath.Abs(dir); err == nil && abs == f.Dir() {
		return true
	}
	here, errHere := os.Stat(dir)
	there, errThere := os.Stat(f.Dir())
	return errHere == nil && errThere == nil && os.SameFile(here, there)
}

// growingFiles returns the names of the files that are uploaded completely each time.
func growingFiles() []string { return append(slices.Clone(folder.Outputs), settings.Name) }

func (u *Upload) overlay(ctx context.Context, disk vfs.FS) (vfs.FS, error) {
	u.cfg.Disk, u.cfg.Fresh = disk, false // an earlier crawl has been moved aside by now
	up, err := upload.Open(ctx, u.cfg)
	if err != nil {
		return nil, err
	}
	u.up.Store(up)
	return away.NewOverlay(context.WithoutCancel(ctx), disk, u.cfg.Dir, u.place, up.Manifest()), nil
}

// Start starts the upload. The crawl must be open. The upload ends at once when ctx does. The caller must call Finish
// or Abort.
func (u *Upload) Start(ctx context.Context) {
	u.started = true
	ctx, u.stop = context.WithCancelCause(ctx)
	u.done = make(chan error, 1)
	if u.states != nil {
		keeping, end := context.WithCancel(ctx)
		u.stopStates = end
		u.stateUploads.Go(func() { u.states.Run(keeping) })
	}
	go func() { u.done <- u.up.Load().Run(ctx) }()
}

// Cut also uploads checkpoints of the node's state, and truncates its log to the part after them; see upload.States.
// Call it before Start.
func (u *Upload) Cut(log journal.Shipped, warn func(error),
	sent func([]store.Mark) bool) func(at, relies journal.Position, marks []store.Mark) {
	u.states = u.up.Load().States(upload.StatesConfig{Log: log, Warn: warn, OnTrim: u.cut, Sent: sent})
	return u.states.Checkpoint
}

// RemoveStates stops uploading checkpoints and deletes the uploaded ones, which are no longer needed.
func (u *Upload) RemoveStates(ctx context.Context) error {
	if u.states == nil {
		return nil
	}
	if u.stopStates != nil {
		u.stopStates()
		u.stateUploads.Wait()
	}
	return u.states.RemoveAll(ctx)
}

// interruptGrace is how long the upload continues after the run was interrupted.
const interruptGrace = time.Minute

var errInterruptEnds = fmt.Errorf("the run was interrupted %v ago", interruptGrace)

// Finish uploads the rest after a run, when all files are closed. It returns when everything is uploaded, or without
// progress for the configured wait. After an interrupted run it ends after a minute, or at the first failure. The error
// is upload.ErrIncomplete if files are missing.
func (u *Upload) Finish(ctx context.Context) error {
	patience := u.wait
	if ctx.Err() != nil {
		patience = 0
	}
	u.up.Load().End(patience)
	stop := u.stop
	unwatch := context.AfterFunc(ctx, func() { // at once, if ctx has already ended
		time.AfterFunc(interruptGrace, func() { stop(errInterruptEnds) })
	})
	defer unwatch()
	return u.end(<-u.done)
}

// Abort stops the upload. The next run uploads the rest.
func (u *Upload) Abort() {
	u.stop(context.Canceled)
	_ = u.end(<-u.done) // the error that files are pending
}

func (u *Upload) end(err error) error {
	u.stop(nil)
	u.stateUploads.Wait()
	u.stop = nil
	return err
}

// Close closes the location. If the crawl was not started, it restores the location's previous state.
func (u *Upload) Close() (err error) {
	if u.stop != nil {
		u.Abort()
	}
	if up := u.up.Load(); up != nil && !u.started {
		ctx, cancel := context.WithTimeout(context.Background(), interruptGrace)
		defer cancel()
		err = up.Release(ctx)
	}
	return errors.Join(err, closePlace(u.place))
}

// Unreachable returns the reason why the location has not been reached yet; nil if it was. Files remain pending until
// then.
func (u *Upload) Unreachable() error {
	if up := u.up.Load(); up != nil {
		return up.NotReady()
	}
	return u.cfg.Unreachable
}

// Has reports whether a file of the crawl is uploaded and in the manifest.
func (u *Upload) Has(name string) bool {
	up := u.up.Load()
	return up != nil && up.Has(name)
}

// URL returns the URL of the location.
func (u *Upload) URL() string { return u.cfg.URL }

// Status returns the state of the upload.
func (u *Upload) Status() stats.Uploads {
	if up := u.up.Load(); up != nil {
		return up.Status()
	}
	return stats.Uploads{Place: u.place.URL()}
}

// openFolder opens the crawl in dir, whose WARC files may be uploaded.
func openFolder(ctx context.Context, dir string) (*Source, error) {
	s := &Source{Dir: dir, Disk: vfs.OS}
	l, err := away.ReadLink(dir)
	if l == nil || err != nil {
		return s, err
	}
	there, _, err := away.ReadLog(vfs.OS, dir)
	if err != nil {
		return nil, err
	}
	if s.place, _, err = reachPlace(ctx, l.URL); err != nil { // not contacted: local files can be read without it
		return nil, err
	}
	s.Disk = away.NewOverlay(ctx, vfs.OS, dir, s.place, there)
	return s, nil
}

// A Source is a crawl to be read, in a folder or a storage location.
type Source struct {
	Dir      string // of a remote crawl: a temporary folder with its settings
	Disk     vfs.FS
	Remote   bool // the crawl has no local folder
	place    place.Place
	manifest *away.Manifest

	parts  []*Source // of several crawls
	names  []string  // of these
	locked []*folder.Folder
}

// Close closes the location, unlocks folders and deletes temporary files.
func (s *Source) Close() error {
	err := closePlace(s.place)
	for _, f := range s.locked {
		err = errors.Join(err, f.Close())
	}
	for _, p := range s.parts {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	if s.Remote && s.Dir != "" {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// WithName replaces the temporary folder in an error by the names of the crawls.
func (s *Source) WithName(err error) error {
	if err == nil || !s.Remote {
		return err
	}
	return &named{err, strings.ReplaceAll(err.Error(), s.Dir, s.title())}
}

type named struct {
	error
	text string
}

func (n *named) Error() string { return n.text }
func (n *named) Unwrap() error { return n.error }

// CheckLocal returns an error if WARC files of a crawl, or all its files, are only in a storage location, for commands
// that read local files.
func CheckLocal(dir, what string) error {
	if places.IsURL(dir) {
		return advice.Usage("%s reads local files, and %s is a storage location: name the crawl's folder", what, dir)
	}
	l, err := away.ReadLink(dir)
	if l == nil || err != nil {
		return err
	}
	there, _, err := away.ReadLog(vfs.OS, dir)
	if err != nil {
		return err
	}
	n := 0
	for _, e := range there.All() {
		if _, err := vfs.OS.Size(filepath.Join(dir, filepath.FromSlash(e.Name))); strings.HasPrefix(e.Name, "warc/") &&
			away.IsMissing(err) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return advice.Usage("%s of the crawl in %s %s only in %s, and %s reads local files: copy them into "+
		"%s first",
		stats.Count(n, "files", "WARC"), dir, stats.Either(n, "is", "are"), l.Place, what, filepath.Join(dir, "warc"))
}

// ReadManifest returns the manifest of a crawl's storage location; an empty one if nothing is uploaded yet. It returns
// an error if the location does not belong to a crawl, because it may be a different one on this machine.
func ReadManifest(ctx context.Context, name string) (there *away.Manifest, err error) {
	p, err := openPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closePlace(p)) }()
	mark, err := away.ReadMark(ctx, p)
	switch {
	case errors.Is(err, away.ErrMarkUnreadable):
	case err != nil:
		return nil, err
	case mark == nil:
		return nil, fmt.Errorf("%s has no %s: it is unreachable from here, or a different location here", name, away.MarkName)
	}
	there, err = away.ReadManifest(ctx, p)
	if away.IsMissing(err) {
		return away.NewManifest(), nil
	}
	return there, err
}

// CopyState copies the newest uploaded checkpoint of a node's state into a folder, laid out like a crawl's state; nil
// if there is none.
func CopyState(ctx context.Context, name string, disk vfs.FS, dir string) (state *away.State, err error) {
	p, err := openPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closePlace(p)) }()
	state, err = away.ReadState(ctx, p)
	if state == nil || err != nil {
		return nil, err
	}
	return state, state.Copy(ctx, p, disk, dir)
}

// DropState deletes the uploaded checkpoints in a location.
func DropState(ctx context.Context, name string) error {
	p, err := openPlace(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(place.FailFast(p).Remove(ctx, away.StateDir), closePlace(p))
}

func closePlace(p place.Place) error {
	if c, is := p.(io.Closer); is {
		return c.Close()
	}
	return nil
}

// OpenSource opens a crawl by the name of its folder, or the URL of its storage location.
func OpenSource(ctx context.Context, name string) (*Source, error) {
	if !places.IsURL(name) {
		return openFolder(ctx, name)
	}
	p, err := openPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	there, err := away.ReadManifest(ctx, p)
	if away.IsMissing(err) {
		if m, markErr := away.ReadMark(ctx, p); markErr == nil && m != nil {
			return nil, errors.Join(advice.Usage("%s: nothing is uploaded yet of %s", name, m), closePlace(p))
		}
		return nil, errors.Join(advice.Usage("%s: there is no crawl: it has no %s", name, away.ManifestName), closePlace(p))
	}
	if err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	config, err := place.ReadFile(ctx, p, settings.Name)
	if away.IsMissing(err) {
		return nil, errors.Join(advice.Usage("%s: no run of the crawl has ended yet: it has no %s", name, settings.Name),
			closePlace(p))
	}
	if err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	dir, err := os.MkdirTemp("", "kumo-place-")
	if err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	s := &Source{Dir: dir, Disk: away.NewRemote(ctx, vfs.OS, dir, p, there), Remote: true, place: p, manifest: there}
	if err := os.WriteFile(filepath.Join(dir, settings.Name), config, 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
