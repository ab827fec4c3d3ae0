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

// reachPlace opens a place by its URL, also one that cannot be reached at present: late is why. It is an error only if
// it will not be over by itself.
func reachPlace(ctx context.Context, name string) (p place.Place, late, err error) {
	if p, err = makePlace(ctx, name); err != nil {
		return nil, nil, err
	}
	if late, err = probe(ctx, p); err != nil {
		return nil, nil, errors.Join(err, closePlace(p))
	}
	return p, late, nil
}

// makePlace opens a place, and asks nobody for it.
func makePlace(ctx context.Context, name string) (place.Place, error) {
	if u, err := url.Parse(name); err == nil && u.User != nil {
		return nil, advice.Usage("place %s: a URL without a name and a password is wanted: it is written into files",
			u.Redacted())
	}
	return places.OpenLazy(ctx, name)
}

// probe asks whether a place is there: late is why it cannot be reached at present.
func probe(ctx context.Context, p place.Place) (late, err error) {
	err = place.Probe(ctx, p)
	if place.IsTransient(err) && ctx.Err() == nil {
		return err, nil
	}
	return nil, err
}

// Check says why a place cannot be opened. late is why it cannot be reached at present, which is no error.
func Check(ctx context.Context, name string) (late, err error) {
	p, late, err := reachPlace(ctx, name)
	if err != nil {
		return nil, err
	}
	return late, closePlace(p)
}

// Child is a place below another one, reached with the same options.
func Child(placeURL, name string) string {
	at, options, has := strings.Cut(placeURL, "?")
	if at = strings.TrimRight(at, "/") + "/" + name; has {
		at += "?" + options
	}
	return at
}

// FolderFor is where a crawl whose files go to a place has its own, unless the user says otherwise.
func FolderFor(placeURL string) string {
	name, _, _ := strings.Cut(placeURL, "?")
	return folder.DefaultDir(strings.Trim(job.SafeName(name), "-."))
}

// Parent is the place that another one lies right below.
func Parent(placeURL string) string {
	at, options, has := strings.Cut(placeURL, "?")
	if at = at[:max(strings.LastIndexByte(at, '/'), 0)]; has {
		at += "?" + options
	}
	return at
}

// PlaceOf is the place to which the files of the crawl in dir go; "" if they stay there.
func PlaceOf(dir string) (string, error) {
	l, err := away.ReadLink(dir)
	if l == nil || err != nil {
		return "", err
	}
	return l.URL, nil
}

// A Config says how files are brought to a place.
type Config struct {
	Place         string                 // its URL
	KeepLocal     bool                   // WARC files stay in the folder, too
	Wait          time.Duration          // for a place that fails, once the run has ended
	Failed, Works func(stats.Uploads)    // are told that the place fails, and that it works again
	Cut           func(upload.TrimStats) // is told how much a node's state in the place has let its log be cut; may be nil
}

// An Upload brings the record files of one run of a crawl to a place.
type Upload struct {
	cfg   upload.Config
	place place.Place // for reading
	wait  time.Duration
	cut   func(upload.TrimStats)
	up    atomic.Pointer[upload.Uploader] // nil until the crawl is opened
	// of a node's state; nil: they do not go there
	states *upload.States

	started      bool                    // Start was called
	stateUploads sync.WaitGroup          // states are brought
	stopStates   context.CancelFunc      // ends that
	stop         context.CancelCauseFunc // of what Start began; nil before
	done         chan error              // how that ended
}

// New opens the place, and sees that it can be that of a job's crawl. It changes nothing. A place that cannot be
// reached at present is told by Late, and is looked at when it can be.
func New(ctx context.Context, j *job.Job, cfg Config) (*Upload, error) {
	p, err := makePlace(ctx, cfg.Place)
	if err != nil {
		return nil, err
	}
	u := &Upload{place: p, wait: cfg.Wait, cut: cfg.Cut, cfg: upload.Config{
		Place:          p,
		URL:            cfg.Place,
		Dir:            j.Dir,
		Crawl:          j.Name,
		Grow:           growingFiles(),
		First:          settings.Name,
		Fresh:          j.Fresh,
		RemoveUploaded: !cfg.KeepLocal,
		Failed:         cfg.Failed,
		Recovered:      cfg.Works,
	}}
	if err := u.check(ctx); err != nil {
		return nil, errors.Join(err, closePlace(p))
	}
	j.Upload = &job.Upload{Overlay: func(disk vfs.FS) (vfs.FS, error) { return u.overlay(ctx, disk) },
		Closed: func() { u.up.Load().FileClosed() }, Durable: func(marks []store.Mark) { u.up.Load().Durable(marks) },
		Status: u.Status}
	return u, nil
}

// check sees that the place can be the crawl's: what the folder knows first, then what the place says.
func (u *Upload) check(ctx context.Context) error {
	if isLocalFolder(u.place, u.cfg.Dir) {
		return advice.Usage("the place %s is the crawl's own folder: name another one by --work", u.place.URL())
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

// isLocalFolder reports whether a place is a folder of this machine: what is there would be taken for a copy of what is
// here.
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

// growingFiles are the files that are brought whole.
func growingFiles() []string { return append(slices.Clone(folder.Outputs), settings.Name) }

func (u *Upload) overlay(ctx context.Context, disk vfs.FS) (vfs.FS, error) {
	u.cfg.Disk, u.cfg.Fresh = disk, false // the earlier crawl is set aside by now
	up, err := upload.Open(ctx, u.cfg)
	if err != nil {
		return nil, err
	}
	u.up.Store(up)
	return away.NewOverlay(context.WithoutCancel(ctx), disk, u.cfg.Dir, u.place, up.Manifest()), nil
}

// Start begins to bring files to the place. The crawl is open. ctx ends it at once; who starts it finishes it, or
// breaks it off.
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

// Cut has checkpoints of the node's state brought to the place, too, and its log cut by what they have; see
// upload.States. It is called before Start.
func (u *Upload) Cut(log journal.Shipped, warn func(error)) func(at, relies journal.Position, marks []store.Mark) {
	u.states = u.up.Load().States(upload.StatesConfig{Log: log, Warn: warn, OnTrim: u.cut})
	return u.states.Checkpoint
}

// RemoveStates brings them no more, and removes them, as nobody goes on from them.
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

// interruptGrace is how long what waits is brought to the place once somebody has ended the run.
const interruptGrace = time.Minute

var errInterruptEnds = fmt.Errorf("the run was interrupted %v ago", interruptGrace)

// Finish returns when all is in the place, after a run whose files are closed, or when nothing has come there for as
// long as it is waited for. Where the run ended because ctx has, it tries for a minute, and gives up at the first
// failure. An error is upload.ErrWaits where files are not there.
func (u *Upload) Finish(ctx context.Context) error {
	patience := u.wait
	if ctx.Err() != nil {
		patience = 0
	}
	u.up.Load().End(patience)
	stop := u.stop
	unwatch := context.AfterFunc(ctx, func() { // at once, if it has ended
		time.AfterFunc(interruptGrace, func() { stop(errInterruptEnds) })
	})
	defer unwatch()
	return u.end(<-u.done)
}

// Abort ends what Start began. What waits, the next run brings.
func (u *Upload) Abort() {
	u.stop(context.Canceled)
	_ = u.end(<-u.done) // that files wait
}

func (u *Upload) end(err error) error {
	u.stop(nil)
	u.stateUploads.Wait()
	u.stop = nil
	return err
}

// Close lets go of the place. That of a crawl that did not begin is as it was.
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

// Unreachable is why the place was not reached yet; nil if it was. That passes, and files wait for it meanwhile.
func (u *Upload) Unreachable() error {
	if up := u.up.Load(); up != nil {
		return up.NotReady()
	}
	return u.cfg.Unreachable
}

// Has reports whether a file of the crawl is in the place, and named there.
func (u *Upload) Has(name string) bool {
	up := u.up.Load()
	return up != nil && up.Has(name)
}

// URL is the place's.
func (u *Upload) URL() string { return u.cfg.URL }

// Status is how it stands.
func (u *Upload) Status() stats.Uploads {
	if up := u.up.Load(); up != nil {
		return up.Status()
	}
	return stats.Uploads{Place: u.place.URL()}
}

// openFolder is the crawl in dir, whose WARC files may lie in its place.
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
	if s.place, _, err = reachPlace(ctx, l.URL); err != nil { // what is here can be read without it
		return nil, err
	}
	s.Disk = away.NewOverlay(ctx, vfs.OS, dir, s.place, there)
	return s, nil
}

// A Source is a crawl that is to be read: in a folder, or in a place alone.
type Source struct {
	Dir      string // of a crawl in a place: a folder for the time being, which has its settings
	Disk     vfs.FS
	Remote   bool // it lies in a place, and nothing of it here
	place    place.Place
	manifest *away.Manifest
}

// Close lets go of the place, and removes what was needed for the time being.
func (s *Source) Close() error {
	err := closePlace(s.place)
	if s.Remote {
		err = errors.Join(err, os.RemoveAll(s.Dir))
	}
	return err
}

// WithName is an error about the crawl, by the name that the user has given it.
func (s *Source) WithName(err error) error {
	if err == nil || !s.Remote {
		return err
	}
	return &named{err, strings.ReplaceAll(err.Error(), s.Dir, s.place.URL())}
}

type named struct {
	error
	text string
}

func (n *named) Error() string { return n.text }
func (n *named) Unwrap() error { return n.error }

// CheckLocal is an error where WARC files of a crawl are in its place alone, or all is: what is done with it reads files
// of this machine.
func CheckLocal(dir, what string) error {
	if places.IsURL(dir) {
		return advice.Usage("%s reads files of this machine, and %s is a place: name the crawl's folder", what, dir)
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
	return advice.Usage("%s of the crawl in %s %s in %s alone, and %s reads files of this machine: copy them into "+
		"%s first",
		stats.Count(n, "files", "WARC"), dir, stats.Either(n, "is", "are"), l.Place, what, filepath.Join(dir, "warc"))
}

// ReadManifest is what a crawl's place has, as its manifest says: nothing, if no file has come there yet. A place that is no
// crawl's is an error: it may be another one than it was for who brought files there.
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
		return nil, fmt.Errorf("%s has no %s: it is not reached from here, or another place from here", name, away.MarkName)
	}
	there, err = away.ReadManifest(ctx, p)
	if away.IsMissing(err) {
		return away.NewManifest(), nil
	}
	return there, err
}

// CopyState copies the newest checkpoint of a node's state that its place has into a folder, as the files lie in that
// of a crawl's state; nil if there is none.
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

// DropState removes what a place has of checkpoints.
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

// OpenSource is the crawl that a folder's name or a place's URL names.
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
			return nil, errors.Join(advice.Usage("%s: nothing was brought there yet of %s", name, m), closePlace(p))
		}
		return nil, errors.Join(advice.Usage("%s: there is no crawl: there is no %s", name, away.ManifestName), closePlace(p))
	}
	if err != nil {
		return nil, err
	}
	config, err := place.ReadFile(ctx, p, settings.Name)
	if away.IsMissing(err) {
		return nil, advice.Usage("%s: no run of the crawl has ended yet: there is no %s", name, settings.Name)
	}
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kumo-place-")
	if err != nil {
		return nil, err
	}
	s := &Source{Dir: dir, Disk: away.NewRemote(ctx, vfs.OS, dir, p, there), Remote: true, place: p, manifest: there}
	if err := os.WriteFile(filepath.Join(dir, settings.Name), config, 0o600); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}
