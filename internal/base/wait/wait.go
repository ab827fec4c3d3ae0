// Package wait implements the waits and wake-ups that goroutines share.
package wait

import (
	"context"
	"iter"
	"time"
)

// For returns after d, or when ctx ends: then with its cause.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// Wake leaves a word in a channel that has room for one, unless one is there.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Every yields the time once in d, until ctx ends.
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		tick := time.NewTicker(d)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-tick.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// Ticks is Every with the present time before.
func Ticks(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if yield(time.Now()) {
			Every(ctx, d)(yield)
		}
	}
}

// Holds reports whether a time is not over yet by both clocks: while a machine is suspended the monotonic one stands
// still, and others have taken its hosts over when it wakes. Who sets the wall clock ahead costs the node a renewal.
func Holds(until, now time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}
