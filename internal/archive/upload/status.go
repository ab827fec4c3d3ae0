package upload

import (
	"fmt"
	"strings"
	"time"

	"kumo/internal/base/stats"
)

func (u *Uploader) tellWaiting(todo []waiting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.status.Waiting, u.status.WaitSize = int64(len(todo)), 0
	for _, f := range todo {
		u.status.WaitSize += f.size
	}
}

// fails tells that the place fails, and why.
func (u *Uploader) fails(err error, next time.Duration) {
	if u.failing(err, next) && u.cfg.Failed != nil {
		u.cfg.Failed(u.Status())
	}
}

// failing reports whether that is news.
func (u *Uploader) failing(err error, next time.Duration) bool {
	why := reason(err)
	u.mu.Lock()
	defer u.mu.Unlock()
	news := u.status.Why != why
	u.status.Why, u.next = why, time.Time{}
	if next > 0 {
		u.next = time.Now().Add(next)
	}
	return news
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

// gaveUp is the error of a run that ends because the place has failed for too long.
func (u *Uploader) gaveUp(err error) error {
	u.failing(err, 0) // which its caller tells
	return u.waits(err)
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
