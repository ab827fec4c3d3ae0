package upload

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"kumo/internal/archive/away"
	"kumo/internal/base/stats"
)

// A report guards the figures that Status returns. Its methods are safe for concurrent use.
type report struct {
	mu     sync.Mutex // guards the fields below
	status stats.Uploads
	next   time.Time // next try; zero: now
}

// snapshot returns the current figures.
func (r *report) snapshot() stats.Uploads {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	if s.Why != "" && !r.next.IsZero() {
		s.Next = max(time.Until(r.next), 0)
	}
	return s
}

// work records that the location works. It reports whether it has failed before.
func (r *report) work() (back bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	back = r.status.Why != ""
	r.status.Why, r.next = "", time.Time{}
	return back
}

// replaced counts an uploaded file, and removes the files that it replaces from the count.
func (r *report) replaced(e *away.Entry, others []away.Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.status
	s.Files, s.Bytes = s.Files+1-int64(len(others)), s.Bytes+e.Size
	for _, o := range others {
		s.Bytes -= o.Size
	}
	if s.Waiting > 0 && !away.IsPart(e.Name) {
		s.Waiting--
		s.WaitSize = max(s.WaitSize-e.Size, 0)
	}
}

// setWaiting sets the files that are still to be uploaded.
func (r *report) setWaiting(todo []pendingFile) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Waiting, r.status.WaitSize = int64(len(todo)), 0
	for _, f := range todo {
		r.status.WaitSize += f.size
	}
}

// reportFailure reports that the location fails, and why.
func (u *Uploader) reportFailure(err error, next time.Duration) {
	if u.report.fail(err, next) && u.cfg.Failed != nil {
		u.cfg.Failed(u.Status())
	}
}

// fail records why the location fails, and when it is retried. It reports whether the reason is new.
func (r *report) fail(err error, next time.Duration) bool {
	why := reason(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	news := r.status.Why != why
	r.status.Why, r.next = why, time.Time{}
	if next > 0 {
		r.next = time.Now().Add(next)
	}
	return news
}

// reason returns the first line of an error, which may join several.
func reason(err error) string {
	why, _, _ := strings.Cut(err.Error(), "\n")
	return why
}

// reportRecovery reports that the location works again, if it has failed.
func (u *Uploader) reportRecovery() {
	if u.report.work() && u.cfg.Recovered != nil {
		u.cfg.Recovered(u.Status())
	}
}

// timeoutError returns the error of a run that ends because the location has failed for too long.
func (u *Uploader) timeoutError(err error) error {
	u.report.fail(err, 0) // the caller reports it
	return u.incompleteError(err)
}

// incompleteError returns the error of a run that ends before all files are uploaded.
func (u *Uploader) incompleteError(err error) error {
	_, _ = u.scan(true)
	s := u.Status()
	if s.Waiting == 0 && u.ledger.listed {
		return nil
	}
	return fmt.Errorf("%w %s: %s (%s) %s: %w", ErrIncomplete, s.Place, stats.Count(s.Waiting, "files"),
		stats.Bytes(s.WaitSize), stats.Either(s.Waiting, "waits", "wait"), err)
}
