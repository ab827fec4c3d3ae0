// Package upload brings a crawl's record files to a place while the crawl goes on: WARC files with their indexes as
// each is closed, and whole, at the end of a run, those that grow.
//
// A file is in the place first, is then read back and compared by its digest, is noted in the crawl's folder, and named
// in the place's manifest last. So whatever happens in between, nothing is named that is not there. What is there whole
// and was not noted, because the process died, is recognised by size and digest; it has the name that it has in the
// folder, and no other.
//
// A place that fails is tried again with growing pauses. The crawl is not held up by any of this: it has its files, and
// goes on until its own disk is full.
package upload

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"kumo/internal/away"
	"kumo/internal/place"
	"kumo/internal/stats"
	"kumo/internal/vfs"
)

// A Config says what goes where.
type Config struct {
	Place place.Place
	URL   string   // with the options by which the place is reached; default its own
	Dir   string   // the crawl's folder
	Disk  vfs.FS   // that has it
	Crawl string   // its name
	Grow  []string // files in the folder that go whole at the end of a run
	First string   // of these, one that goes at the beginning, too: who reads what there is needs it; may be empty
	Fresh bool     // the crawl begins anew: what another has in the place is not to be written over
	Drop  bool     // WARC files leave the folder once the place has them
	Late  error    // the place could not be reached a moment ago: Run makes it the crawl's when it can be

	Workers int // files that are on the way at once; default 2
	// are told that the place fails, when it begins to or for another reason, and that it works again
	Failed, Works func(stats.Uploads)
}

// ErrWaits is the end of a run whose files are not all in the place.
var ErrWaits = errors.New("not all files are in the place")

// An Uploader brings files to a place. [Uploader.Run] is called once; the other methods may be called by many
// goroutines at once.
type Uploader struct {
	cfg   Config
	mark  away.Mark
	link  *away.Link
	fresh bool // this process was the first to mark the place
	there *away.Manifest
	poke  chan struct{}
	end   chan struct{} // closed: nothing new comes

	patience time.Duration // with a place that fails, once end is closed
	done     map[string]bool
	tries    map[string]int  // of files, that failed
	grown    map[string]bool // those that grow and are there as they are now
	named    bool            // the place's manifest has all that is there
	last     time.Time       // when something came into the place, or end was closed
	news     []string        // files that came since it was written
	joins    map[string]bool // whether lists go on from what is there, of those for which that is known
	complete []string        // lists that are there whole, and no longer in parts; guarded by noting
	claimed  atomic.Bool     // the place is the crawl's
	states   *States         // nil: no checkpoints go there

	noting sync.Mutex // guards log
	log    int64      // bytes of the folder's log that are whole lines

	mu     sync.Mutex // guards what follows
	status stats.Uploads
	next   time.Time // try; zero: now
	// lengths of lists, as far as they stay as they are, and as they were brought in parts by this process
	durable, sent map[string]int64
	due           bool // lists have grown by much
	// files that came since this process wrote the place's manifest; nil: it has not yet
	unnamed map[string]bool
}

// Open makes the place the crawl's, or sees that it is, and reads what is there. The folder is held by the caller. A
// place that cannot be reached, or takes nothing yet, is left to Run: [Uploader.Late] says why.
func Open(ctx context.Context, cfg Config) (*Uploader, error) {
	cfg.Workers, cfg.URL = cmp.Or(cfg.Workers, 2), cmp.Or(cfg.URL, cfg.Place.URL())
	cfg.Place = place.Prompt(cfg.Place) // that it fails is to be told, and tried again here
	u := &Uploader{cfg: cfg, poke: make(chan struct{}, 1), end: make(chan struct{}), done: map[string]bool{},
		tries: map[string]int{}, grown: map[string]bool{}, last: time.Now(), joins: map[string]bool{},
		durable: map[string]int64{}, sent: map[string]int64{}}
	if err := u.open(ctx); err != nil {
		return nil, err
	}
	there, torn, err := away.ReadLog(cfg.Disk, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if torn >= 0 {
		if err := vfs.CutBack(cfg.Disk, u.path(away.LogName), torn); err != nil {
			return nil, err
		}
	}
	if u.log, err = cfg.Disk.Size(u.path(away.LogName)); away.IsMissing(err) {
		u.log, err = 0, nil
	}
	u.there, u.status.Place = there, cfg.Place.URL()
	for _, e := range there.All() {
		u.count(&e)
	}
	return u, err
}

// open makes the place the crawl's, if it can be reached.
func (u *Uploader) open(ctx context.Context) (err error) {
	if u.link, err = u.readLink(); err != nil {
		return err
	}
	if u.cfg.Late == nil {
		if err = u.claim(ctx); err == nil || !place.Passes(err) {
			return err
		}
		u.cfg.Late = err
	}
	u.status.Why = reason(u.cfg.Late)
	return u.know()
}

// Late is why the place is not the crawl's yet; nil if it is.
func (u *Uploader) Late() error {
	if u.claimed.Load() {
		return nil
	}
	return u.cfg.Late
}

// Manifest is what is in the place, now and as it grows.
func (u *Uploader) Manifest() *away.Manifest { return u.there }

// Has reports whether who reads the place alone finds a file: the place has it, a WARC file with its index, and its
// manifest names it.
func (u *Uploader) Has(name string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, is := u.there.Get(name)
	if !is || u.unnamed == nil || u.unnamed[name] {
		return false
	}
	if !isWARC(name) {
		return true
	}
	_, is = u.there.Get(indexOf(name))
	return is && !u.unnamed[indexOf(name)]
}

// Look says that a file was closed. It never waits.
func (u *Uploader) Look() {
	select {
	case u.poke <- struct{}{}:
	default:
	}
}

// End says that the crawl's run has ended and its files are closed: those that grow are brought to the place, too, and
// Run returns when all is there, or nothing has come there for so long.
func (u *Uploader) End(patience time.Duration) {
	u.patience = patience
	close(u.end)
}

// Status is how it stands.
func (u *Uploader) Status() stats.Uploads {
	u.mu.Lock()
	s, next, states := u.status, u.next, u.states
	u.mu.Unlock() // states may take their time, and the journal's commits wait for Durable
	if states != nil {
		s.State = states.status()
	}
	if s.Why != "" && !next.IsZero() {
		s.Next = max(time.Until(next), 0)
	}
	return s
}

func (u *Uploader) path(name string) string {
	return filepath.Join(u.cfg.Dir, filepath.FromSlash(name))
}

func (u *Uploader) isEnding() bool {
	select {
	case <-u.end:
		return true
	default:
		return false
	}
}

// Run brings files to the place, until End was called and all are there. An error that is ErrWaits says that some are
// not; one that is ErrTaken, that the place is no longer this crawl's.
func (u *Uploader) Run(ctx context.Context) error {
	for failures, ended := 0, false; ; {
		ending := u.isEnding() // before it is looked
		if ending && !ended {
			ended, failures, u.last = true, 0, time.Now()
			delete(u.grown, u.cfg.First) // it may be another one by now
		}
		todo, err := u.look(ending)
		if claimed := u.claimLate(ctx); claimed != nil {
			err = errors.Join(claimed, err)
		} else if err == nil && len(todo) == 0 && u.named && (ending || !u.partsDue()) {
			if !ending {
				u.wait(ctx, 0)
			} else if err = u.whole(ctx); err == nil {
				return nil
			}
		} else {
			err = errors.Join(err, u.round(ctx, todo))
		}
		switch {
		case ctx.Err() != nil:
			return u.waits(context.Cause(ctx))
		case errors.Is(err, ErrRefused):
			u.fails(err, 0)
			for !u.isEnding() && ctx.Err() == nil {
				u.wait(ctx, mostPause) // what waits is told all the same
			}
			return u.waits(err)
		case errors.Is(err, ErrTaken):
			u.fails(err, 0)
			return err
		case err == nil:
			failures = 0
			u.works()
			continue
		}
		failures++
		next := pause(failures)
		if !u.claimed.Load() && !place.Passes(err) && !errors.Is(err, place.ErrLocked) { // somebody has to do something
			if next = mostPause; ending {
				return u.waits(err)
			}
		}
		if ending {
			left := u.patience - time.Since(u.last)
			if left <= 0 {
				return u.waits(err)
			}
			next = min(next, left)
		}
		u.fails(err, next)
		u.wait(ctx, next)
	}
}

const (
	leastPause = time.Second
	mostPause  = 5 * time.Minute
)

// pause is how long nothing is tried after so many failures in a row.
func pause(failures int) time.Duration {
	return min(leastPause<<min(failures-1, 20), mostPause)
}

// wait returns when the time has passed, or, without one, when a file was closed. It does so too when the run ends.
func (u *Uploader) wait(ctx context.Context, d time.Duration) {
	var passed <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		passed = t.C
	}
	end := u.end
	if u.isEnding() {
		end = nil
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-passed:
			return
		case <-end:
			return
		case <-u.poke:
			if d == 0 {
				return
			}
			_, _ = u.look(false) // so that what waits is told
		}
	}
}

// A waiting file is to be brought to the place.
type waiting struct {
	name string
	size int64
}

// look finds out what waits: each WARC file behind its index, those that failed least first.
func (u *Uploader) look(ending bool) (todo []waiting, err error) {
	names, err := u.cfg.Disk.List(u.path("warc"))
	if err != nil {
		return nil, err
	}
	here := make(map[string]bool, len(names))
	for _, name := range names {
		here[name] = true
	}
	for _, name := range names {
		stem, isIndex := strings.CutSuffix(name, ".cdxj")
		switch {
		case isIndex && !u.closed(here, stem), !isIndex && !isWARC(name):
			continue // it grows, or is being written
		case !isIndex && !here[indexOf(name)]:
			continue // it is of no use without
		}
		if todo, err = u.add(todo, "warc/"+name); err != nil {
			return nil, err
		}
	}
	if first := u.cfg.First; !ending && first != "" {
		if _, is := u.there.Get(first); !is {
			if todo, err = u.addGrown(todo, first); err != nil {
				return nil, err
			}
		}
	}
	if ending {
		var grown []waiting // which go first: a process that is interrupted may not have time for all
		for _, name := range u.cfg.Grow {
			if grown, err = u.addGrown(grown, name); err != nil {
				return nil, err
			}
		}
		todo = append(grown, todo...)
	}
	u.tellWaiting(todo)
	slices.SortStableFunc(todo, func(a, b waiting) int { return cmp.Compare(u.tries[a.name], u.tries[b.name]) })
	return todo, nil
}

var extensions = []string{".warc.gz", ".warc.zst", ".warc"}

func isWARC(name string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool { return strings.HasSuffix(name, ext) })
}

// indexOf is the name of a WARC file's index.
func indexOf(name string) string {
	stem, _, _ := strings.Cut(name, ".warc")
	return stem + ".cdxj"
}

// closed reports whether a WARC file is closed, which is here or in the place: its index is whole before.
func (u *Uploader) closed(here map[string]bool, stem string) bool {
	return slices.ContainsFunc(extensions, func(ext string) bool {
		_, there := u.there.Get("warc/" + stem + ext)
		return there || here[stem+ext]
	})
}

// add adds a file that is not in the place with the size that it has here.
func (u *Uploader) add(todo []waiting, name string) ([]waiting, error) {
	if u.done[name] {
		return todo, nil
	}
	size, err := u.cfg.Disk.Size(u.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return todo, nil // somebody has moved it away
	}
	if err != nil {
		return nil, err
	}
	if e, is := u.there.Get(name); is && e.Size == size {
		u.done[name] = true
		return todo, nil
	}
	return append(todo, waiting{name, size}), nil
}

// addGrown adds a file that is not in the place as it is here.
func (u *Uploader) addGrown(todo []waiting, name string) ([]waiting, error) {
	if u.grown[name] {
		return todo, nil
	}
	size, err := u.cfg.Disk.Size(u.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		u.grown[name] = true
		return todo, nil
	}
	if err != nil {
		return nil, err
	}
	if e, is := u.there.Get(name); is && e.Size == size {
		sum, err := u.digestHere(name)
		if err != nil {
			return nil, err
		}
		if hex.EncodeToString(sum[:]) == e.SHA256 {
			u.grown[name] = true
			return todo, nil
		}
	}
	return append(todo, waiting{name, size}), nil
}

func (u *Uploader) tellWaiting(todo []waiting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status.Waiting, u.status.WaitSize = int64(len(todo)), 0
	for _, f := range todo {
		u.status.WaitSize += f.size
	}
}

// perRound is how many files are brought to the place before its manifest names them.
const perRound = 8

// round brings the first of what waits to the place, names it, and lets go of what need not be here any more. With an
// error it has done what it could.
func (u *Uploader) round(ctx context.Context, todo []waiting) error {
	if err := u.stillOurs(ctx); err != nil {
		return err
	}
	if err := u.bringParts(ctx); err != nil { // at the end, too: lists that are to come whole may fail
		return err
	}
	todo = todo[:min(len(todo), perRound)]
	failed := make([]error, len(todo))
	var g errgroup.Group
	var fails atomic.Bool
	g.SetLimit(u.cfg.Workers)
	for n, f := range todo {
		g.Go(func() error {
			if fails.Load() && !u.isEnding() { // or else there may be no other time
				failed[n] = errSkipped
				return nil
			}
			if failed[n] = u.bring(ctx, f); failed[n] != nil {
				fails.Store(true)
			}
			return failed[n]
		})
	}
	err := g.Wait()
	for n, f := range todo {
		if failed[n] != nil {
			if !errors.Is(failed[n], errSkipped) {
				u.tries[f.name]++
			}
			continue
		}
		u.named, u.last, u.news = false, time.Now(), append(u.news, f.name)
		if slices.Contains(u.cfg.Grow, f.name) {
			u.grown[f.name] = true
		} else {
			u.done[f.name] = true
		}
	}
	if !u.named {
		if nameErr := away.WriteSmall(ctx, u.cfg.Place, away.ManifestName, u.there.Encode()); nameErr != nil {
			return errors.Join(err, fmt.Errorf("%s: %w", away.ManifestName, nameErr))
		}
		u.named = true
		u.mu.Lock()
		u.unnamed = map[string]bool{}
		u.mu.Unlock()
		u.states.look(u.news)
		u.news = nil
		u.dropParts(ctx)
	}
	return errors.Join(err, u.drop())
}

var errSkipped = errors.New("another file has failed")

// bring brings a file to the place, if it is not there, and notes it.
func (u *Uploader) bring(ctx context.Context, f waiting) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	sum, err := u.send(ctx, f)
	if err != nil {
		return fmt.Errorf("%s: %w", f.name, err)
	}
	return u.note(away.Entry{Name: f.name, Size: f.size, SHA256: hex.EncodeToString(sum[:]), Time: time.Now().UTC()})
}

// send sees that a file is in the place, as it is here: an earlier process may have brought it there, and not lived to
// note it. A place that takes files by their digests sees to both itself; of another what was written is read back.
func (u *Uploader) send(ctx context.Context, f waiting) (sum digest, err error) {
	src, err := u.cfg.Disk.OpenAt(u.path(f.name))
	if err != nil {
		return sum, err
	}
	defer func() { _ = src.Close() }() // it is only read
	if sum, err = digestOf(io.NewSectionReader(src, 0, f.size)); err != nil {
		return sum, err
	}
	_, checks := u.cfg.Place.(place.Uploader)
	if !checks {
		if is, err := u.has(ctx, f, sum); is || err != nil {
			return sum, err
		}
	}
	return sum, u.put(ctx, f.name, src, f.size, sum)
}

// put writes a file into the place, which has it then as it was given.
func (u *Uploader) put(ctx context.Context, name string, src io.ReaderAt, size int64, sum digest) error {
	err := place.Upload(ctx, u.cfg.Place, name, src, size, sum)
	if _, checks := u.cfg.Place.(place.Uploader); err != nil || checks {
		return err
	}
	there, err := u.digestThere(ctx, name)
	if err == nil && there != sum {
		err = fmt.Errorf("the place has kept other bytes: their SHA-256 is %x, not %x", there, sum)
	}
	return err
}

// has reports whether a file that is not noted is in the place.
func (u *Uploader) has(ctx context.Context, f waiting, sum digest) (bool, error) {
	if _, noted := u.there.Get(f.name); noted {
		return false, nil // that is another
	}
	info, err := u.cfg.Place.Stat(ctx, f.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size != f.size {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	there, err := u.digestThere(ctx, f.name)
	return there == sum, err
}

type digest = [sha256.Size]byte

func (u *Uploader) digestHere(name string) (sum digest, err error) {
	src, err := u.cfg.Disk.Open(u.path(name))
	if err != nil {
		return sum, err
	}
	sum, err = digestOf(src)
	return sum, errors.Join(err, src.Close())
}

func (u *Uploader) digestThere(ctx context.Context, name string) (sum digest, err error) {
	src, err := u.cfg.Place.Open(ctx, name, 0, -1)
	if err != nil {
		return sum, err
	}
	sum, err = digestOf(src)
	return sum, errors.Join(err, src.Close())
}

func digestOf(src io.Reader) (digest, error) {
	sum := sha256.New()
	_, err := io.Copy(sum, src)
	return digest(sum.Sum(nil)), err
}

// note writes into the folder's log that files are in the place.
func (u *Uploader) note(came ...away.Entry) (err error) {
	if len(came) == 0 {
		return nil
	}
	u.noting.Lock()
	defer u.noting.Unlock()
	name, lines := u.path(away.LogName), []byte(nil)
	for _, e := range came {
		lines = append(lines, e.Line()...)
	}
	if err := vfs.CutBack(u.cfg.Disk, name, u.log); err != nil { // a full disk has torn the last line
		return err
	}
	f, err := u.cfg.Disk.Append(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(lines); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	u.log += int64(len(lines))
	for _, e := range came {
		had := u.there.Parts(e.Name)
		u.putUnnamed(&e)
		u.count(&e)
		u.uncount(had)
		if len(had) > 0 && away.IsPart(had[len(had)-1].Name) && !away.IsPart(e.Name) {
			u.complete = append(u.complete, e.Name)
		}
	}
	return nil
}

// putUnnamed puts a file into what is in the place, which the place's manifest does not name yet.
func (u *Uploader) putUnnamed(e *away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.there.Put(*e)
	if u.unnamed != nil {
		u.unnamed[e.Name] = true
	}
}

// uncount takes out of the status what a file has taken the place of.
func (u *Uploader) uncount(had []away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, e := range had {
		u.status.Files, u.status.Bytes = u.status.Files-1, u.status.Bytes-e.Size
	}
}

func (u *Uploader) count(e *away.Entry) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status.Files++
	u.status.Bytes += e.Size
	if u.status.Waiting > 0 && !away.IsPart(e.Name) {
		u.status.Waiting--
		u.status.WaitSize = max(u.status.WaitSize-e.Size, 0)
	}
}

// drop removes WARC files that the place has, and names. Their indexes, which are small, stay.
func (u *Uploader) drop() error {
	if !u.cfg.Drop {
		return nil
	}
	names, err := u.cfg.Disk.List(u.path("warc"))
	if err != nil {
		return err
	}
	gone := false
	for _, name := range names {
		full := "warc/" + name
		if !isWARC(name) || !u.done[full] || !u.done["warc/"+indexOf(name)] {
			continue
		}
		if err := u.cfg.Disk.Remove(u.path(full)); err != nil {
			return err
		}
		gone = true
	}
	if !gone {
		return nil
	}
	return u.cfg.Disk.SyncDir(u.path("warc"))
}

// fails tells that the place fails, and why.
func (u *Uploader) fails(err error, next time.Duration) {
	why := reason(err)
	u.mu.Lock()
	news := u.status.Why != why
	u.status.Why, u.next = why, time.Time{}
	if next > 0 {
		u.next = time.Now().Add(next)
	}
	u.mu.Unlock()
	if news && u.cfg.Failed != nil {
		u.cfg.Failed(u.Status())
	}
}

// reason is the first line of an error, which may be joined of several.
func reason(err error) string {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return why
}

func (u *Uploader) works() {
	u.mu.Lock()
	back := u.status.Why != ""
	u.status.Why, u.next = "", time.Time{}
	u.mu.Unlock()
	if back && u.cfg.Works != nil {
		u.cfg.Works(u.Status())
	}
}

// waits is the error of a run that ends before all is in the place.
func (u *Uploader) waits(err error) error {
	_, _ = u.look(true)
	s := u.Status()
	if s.Waiting == 0 && u.named {
		return nil
	}
	return fmt.Errorf("%w %s: %s (%s) %s: %w", ErrWaits, s.Place, stats.Count(s.Waiting, "files"), stats.Bytes(s.WaitSize),
		stats.Either(s.Waiting, "waits", "wait"), err)
}
