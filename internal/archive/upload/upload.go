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
	URL            string   // with the location's options; default its own
	Dir            string   // the crawl's folder
	Disk           vfs.FS   // the disk with the folder
	Crawl          string   // the crawl's name
	Grow           []string // growing files, uploaded whole at the end of a run
	First          string   // the one of them that is also uploaded at the start, because readers need it; may be ""
	Fresh          bool     // the crawl starts over and must not overwrite another crawl in the location
	RemoveUploaded bool     // remove uploaded WARC files from the folder
	Unreachable    error    // why the location was unreachable at the start: Run claims it later

	Workers int // files uploaded at the same time; default 2
	// Failed is called when the location begins to fail or fails for another reason, Recovered when it works again.
	Failed, Recovered func(stats.Uploads)
}

// ErrIncomplete means that a run ended before all its files were uploaded.
var ErrIncomplete = errors.New("not all files are uploaded to")

// An Uploader uploads files to a location. [Uploader.Run] is called once; the other methods are safe for concurrent
// use. It guards the order and the retries of uploads; its parts guard the rest.
type Uploader struct {
	cfg    Config
	claim  claim
	queue  *queue
	sender sender
	ledger ledger
	lists  lists
	report report
	wakeup chan struct{}
	end    chan struct{} // closed: no new files follow

	patience     time.Duration // time for retries after end is closed
	worst        int           // failures of the file that failed most often, among those of the last round
	lastProgress time.Time     // when a file was uploaded or end was closed

	mu     sync.Mutex // guards states
	states *States    // nil: no checkpoints are uploaded
}

// Open makes the location the crawl's, or checks that it is, and reads the list of its files. The caller must hold the
// crawl's folder. If the location is unreachable or not yet writable, Run retries, and [Uploader.NotReady] returns why.
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

// open makes the location the crawl's, if it is reachable.
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

// NotReady returns why the location is not the crawl's yet; nil if it is.
func (u *Uploader) NotReady() error {
	if u.claim.established.Load() {
		return nil
	}
	return u.cfg.Unreachable
}

// Manifest returns the files in the location. It is updated by uploads.
func (u *Uploader) Manifest() *away.Manifest { return u.ledger.manifest }

// Has reports whether readers of the location find a file: it is uploaded, also the index of a WARC file, and the
// manifest lists it.
func (u *Uploader) Has(name string) bool { return u.ledger.has(name) }

// FileClosed reports that a file was closed. It does not block.
func (u *Uploader) FileClosed() {
	select {
	case u.wakeup <- struct{}{}:
	default:
	}
}

// End reports that the crawl's run has ended and its files are closed. Growing files are then also uploaded. Run
// returns when all files are uploaded, or when nothing was uploaded for patience.
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

// scan lists the files to upload, and updates their number in the status.
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

// Run uploads files until End was called and all are uploaded. It returns ErrIncomplete if some are not, and ErrInUse
// if the location is no longer this crawl's.
func (u *Uploader) Run(ctx context.Context) error {
	for failures, ended := 0, false; ; {
		ending, came := u.isEnding(), u.lastProgress // before scan
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
				u.wait(ctx, maxPause, false) // the status still counts pending files
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
		if u.lastProgress.After(came) { // among many uploads some always fail: pause longer only if a file fails again
			failures = max(u.worst, 1)
		}
		next := pause(failures)
		if !u.claim.established.Load() && !place.IsTransient(err) && !errors.Is(err, place.ErrLocked) { // the user must act
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

// pause returns the pause after a number of failures in a row.
func pause(failures int) time.Duration {
	return min(minPause<<min(failures-1, 20), maxPause)
}

// wait waits for a duration, or without one until a file is closed. It also returns when the run ends, unless ending is
// set: the caller then has seen that already.
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
