// Package upload uploads a crawl's record files to a storage location during the crawl. WARC files and their indexes
// are uploaded when they are closed. Growing lists are uploaded in parts during a run, and whole at its end. A node's
// checkpoints can be uploaded, too ([States]).
//
// # Order of steps
//
// A file is uploaded, verified by its digest, recorded in the crawl's folder, and last listed in the location's
// manifest. Locations that check digests themselves ([place.Uploader]) verify the file; from others it is read back. So
// the manifest never lists a missing file, whenever a failure occurs.
//
// If the process ended before it recorded a complete file, the next run recognizes the file by size and digest. A file
// has the same name in the location as in the folder, and no other.
//
// # Failures
//
// Failed uploads are retried with growing pauses. The crawl does not wait for uploads: it keeps its files and continues
// until its own disk is full.
package upload

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
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
	worst    int             // the most of these of one that failed in the last round
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
		ending, came := u.isEnding(), u.last // before it is looked
		if ending && !ended {
			ended, failures, u.last = true, 0, time.Now()
			came = u.last
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
		if u.last.After(came) { // of many steps some fail, which is no reason to wait longer, if it is not one file's
			failures = max(u.worst, 1)
		}
		next := pause(failures)
		if !u.claimed.Load() && !place.Passes(err) && !errors.Is(err, place.ErrLocked) { // somebody has to do something
			if next = mostPause; ending {
				return u.gaveUp(err)
			}
		}
		if ending {
			left := u.patience - time.Since(u.last)
			if left <= 0 {
				return u.gaveUp(err)
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
