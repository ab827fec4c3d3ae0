// Package wait implements the waits and wake-ups that goroutines share.
package wait

import (
	"context"
	"iter"
	"time"
)

// For waits for d. If ctx ends first, it returns the cause.
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

// Wake sends on a channel with a buffer of one, unless the buffer is full.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Every yields the time at intervals of d until ctx ends.
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

// Ticks yields the current time at once, and then as Every does.
func Ticks(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		if yield(time.Now()) {
			Every(ctx, d)(yield)
		}
	}
}

// IsAfter reports whether until is after now by both the monotonic and the wall clock. The monotonic clock stops while
// a machine is suspended, and other nodes take over its hosts during that time. Setting the wall clock forward costs
// the node one extra lease renewal.
func IsAfter(until, now time.Time) bool {
	return now.Before(until) && now.Round(0).Before(until.Round(0))
}
