package frontier

import (
	"context"
	"time"
)

// A leader lets one caller of Next at a time wait for the next host, while the other callers wait for the leader. Its
// channels need no lock.
type leader struct {
	lead chan struct{} // held by the leading caller
	wake chan struct{} // makes it poll again
}

func newLeader() *leader { return &leader{make(chan struct{}, 1), make(chan struct{}, 1)} }

// signal makes the leader poll again.
func (l *leader) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run becomes the leader and calls poll until poll reports done or an error. In between it sleeps for the returned
// time, or until a signal.
func (l *leader) run(ctx context.Context, poll func() (done bool, wait time.Duration, err error)) error {
	select {
	case l.lead <- struct{}{}:
		defer func() { <-l.lead }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var timer *time.Timer // most calls have nothing to wait for
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		done, wait, err := poll()
		if done || err != nil {
			return err
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-l.wake:
		}
	}
}
