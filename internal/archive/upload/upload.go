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
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
)

// A Config configures the uploads of a crawl.
type Config struct {
	Place          place.Place
	URL            string   // with the options by which the place is reached; default its own
	Dir            string   // the crawl's folder
	Disk           vfs.FS   // that has it
	Crawl          string   // its name
	Grow           []string // files in the folder that go whole at the end of a run
	First          string   // of these, one that goes at the beginning, too: who reads what there is needs it; may be empty
	Fresh          bool     // the crawl begins anew: what another has in the place is not to be written over
	RemoveUploaded bool     // WARC files leave the folder once the place has them
	Unreachable    error    // the place could not be reached a moment ago: Run makes it the crawl's when it can be

	Workers int // files that are on the way at once; default 2
	// are told that the place fails, when it begins to or for another reason, and that it works again
	Failed, Recovered func(stats.Uploads)
}

// ErrIncomplete is the end of a run whose files are not all in the place.
var ErrIncomplete = errors.New("not all files are in the place")

// An Uploader uploads files to a place. [Uploader.Run] is called once; the other methods may be called by many
// goroutines at once. It guards the order and the retries of uploads; its parts guard the rest.
type Uploader struct {
	cfg    Config
	claim  claim
	queue  *queue
	sender sender
	ledger ledger
	lists  lists
	report report
	wakeup chan struct{}
	end    chan struct{} // closed: no new files come

	patience     time.Duration // with a place that fails, once end is closed
	worst        int           // failures of the file that failed most often, of those in the last round
	lastProgress time.Time     // when a file came into the place, or end was closed

	mu     sync.Mutex // guards states
	states *States    // nil: no checkpoints are uploaded
}

// Open makes the place the crawl's, or checks that it is, and reads the record of its files. The caller holds the
// folder. A place that cannot be reached, or written to yet, is left to Run: [Uploader.Late] returns why.
func Open(ctx context.Context, cfg Config) (*Uploader, error) {
	cfg.Workers, cfg.URL = cmp.Or(cfg.Workers, 2), cmp.Or(cfg.URL, cfg.Place.URL())
	cfg.Place = place.FailFast(cfg.Place) // the Uploader reports and retries failures itself
	u := &Uploader{cfg: cfg, wakeup: make(chan struct{}, 1), end: make(chan struct{}), lastProgress: time.Now()}
	u.claim.cfg = &u.cfg
	if err := u.open(ctx); err != nil {
		return nil, err
	}
	there, torn, err := away.ReadLog(cfg.Disk, cfg.Dir)
	if err != nil {
		return nil, err
	}
	if torn >= 0 {
		if err := vfs.TruncateTo(cfg.Disk, cfg.path(away.LogName), torn); err != nil {
			return nil, err
		}
	}
	log, err := cfg.Disk.Size(cfg.path(away.LogName))
	if away.IsMissing(err) {
		log, err = 0, nil
	}
	u.queue, u.sender = newQueue(&u.cfg, there), sender{&u.cfg, there}
	u.ledger = ledger{cfg: &u.cfg, report: &u.report, manifest: there, log: log}
	u.lists = lists{cfg: &u.cfg, sender: &u.sender, ledger: &u.ledger, there: there, contiguous: map[string]bool{},
		durable: map[string]int64{}, sent: map[string]int64{}}
	u.report.status.Place = cfg.Place.URL()
	for _, e := range there.All() {
		u.report.replaced(&e, nil)
	}
	return u, err
}

// open makes the place the crawl's, if it can be reached.
func (u *Uploader) open(ctx context.Context) (err error) {
	if u.claim.link, err = u.claim.read(); err != nil {
		return err
	}
	if u.cfg.Unreachable == nil {
		if err = u.claim.establish(ctx); err == nil || !place.IsTransient(err) {
			return err
		}
		u.cfg.Unreachable = err
	}
	u.report.status.Why = reason(u.cfg.Unreachable)
	return u.claim.writeLink()
}

// Late returns why the place is not the crawl's yet; nil if it is.
func (u *Uploader) NotReady() error {
	if u.claim.established.Load() {
		return nil
	}
	return u.cfg.Unreachable
}

// Manifest returns the files in the place. It grows with them.
func (u *Uploader) Manifest() *away.Manifest { return u.ledger.manifest }

// Has reports whether a reader of the place finds a file: the place has it, a WARC file with its index, and the
// manifest lists it.
func (u *Uploader) Has(name string) bool { return u.ledger.has(name) }

// FileClosed reports that a file was closed. It never waits.
func (u *Uploader) FileClosed() {
	select {
	case u.wakeup <- struct{}{}:
	default:
	}
}

// End reports that the crawl's run has ended and its files are closed. Growing files are uploaded, too, and Run returns
// when all files are in the place, or none has come there for so long.
func (u *Uploader) End(patience time.Duration) {
	u.patience = patience
	close(u.end)
}

// Status returns the figures of the uploads.
func (u *Uploader) Status() stats.Uploads {
	u.mu.Lock()
	states := u.states
	u.mu.Unlock()
	s := u.report.snapshot()
	if states != nil {
		s.State = states.status()
	}
	return s
}

func (c *Config) path(name string) string {
	return filepath.Join(c.Dir, filepath.FromSlash(name))
}

// look lists the files that are to be uploaded, and reports their number.
func (u *Uploader) scan(ending bool) ([]pendingFile, error) {
	todo, err := u.queue.scan(ending)
	if err == nil {
		u.report.setWaiting(todo)
	}
	return todo, err
}

func (u *Uploader) isEnding() bool {
	select {
	case <-u.end:
		return true
	default:
		return false
	}
}

// Run uploads files, until End was called and all are in the place. The error is ErrIncomplete if some are not, and ErrInUse
// if the place is no longer this crawl's.
func (u *Uploader) Run(ctx context.Context) error {
	for failures, ended := 0, false; ; {
		ending, came := u.isEnding(), u.lastProgress // before look
		if ending && !ended {
			ended, failures, u.lastProgress = true, 0, time.Now()
			came = u.lastProgress
			delete(u.queue.grown, u.cfg.First) // it may have changed
		}
		todo, err := u.scan(ending)
		if claimed := u.claim.establishLate(ctx); claimed != nil {
			err = errors.Join(claimed, err)
		} else if err == nil && len(todo) == 0 && u.ledger.listed && (ending || !u.lists.partsDue()) {
			if !ending {
				u.wait(ctx, 0, false)
			} else if err = u.claim.complete(ctx); err == nil {
				return nil
			}
		} else {
			err = errors.Join(err, u.round(ctx, todo))
		}
		switch {
		case ctx.Err() != nil:
			return u.incompleteError(context.Cause(ctx))
		case errors.Is(err, ErrRefused):
			u.reportFailure(err, 0)
			for !u.isEnding() && ctx.Err() == nil {
				u.wait(ctx, maxPause, false) // and the status counts waiting files all the same
			}
			return u.incompleteError(err)
		case errors.Is(err, ErrInUse):
			u.reportFailure(err, 0)
			return err
		case err == nil:
			failures = 0
			u.reportRecovery()
			continue
		}
		failures++
		if u.lastProgress.After(came) { // some steps of many fail: a longer pause is for a file that fails again
			failures = max(u.worst, 1)
		}
		next := pause(failures)
		if !u.claim.established.Load() && !place.IsTransient(err) && !errors.Is(err, place.ErrLocked) { // a person has to act
			if next = maxPause; ending {
				return u.timeoutError(err)
			}
		}
		if ending {
			left := u.patience - time.Since(u.lastProgress)
			if left <= 0 {
				return u.timeoutError(err)
			}
			next = min(next, left)
		}
		u.reportFailure(err, next)
		u.wait(ctx, next, ending)
	}
}

const (
	minPause = time.Second
	maxPause = 5 * time.Minute
)

// pause returns the time until the next try after so many failures in a row.
func pause(failures int) time.Duration {
	return min(minPause<<min(failures-1, 20), maxPause)
}

// wait returns when the time has passed, or, without one, when a file was closed. It does so too when the run ends,
// unless the caller has acted on that: what the caller has seen counts, as the run may end at any moment.
func (u *Uploader) wait(ctx context.Context, d time.Duration, ending bool) {
	var passed <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		passed = t.C
	}
	end := u.end
	if ending {
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
		case <-u.wakeup:
			if d == 0 {
				return
			}
			_, _ = u.scan(false) // for the status
		}
	}
}
