package crawl

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// every calls f at an interval until the context ends or f fails.
func every(ctx context.Context, interval time.Duration, f func() error) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := f(); err != nil {
			return err
		}
	}
}

// A valve blocks callers of await while it is shut. The zero valve is open.
type valve struct {
	mu   sync.Mutex                    // serializes set and pulse
	wait atomic.Pointer[chan struct{}] // closed when it opens; nil while it is open
}

func (v *valve) set(shut bool) {
	if shut == v.shut() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch was := v.wait.Load(); {
	case shut && was == nil:
		wait := make(chan struct{})
		v.wait.Store(&wait)
	case !shut && was != nil:
		v.wait.Store(nil)
		close(*was)
	}
}

// pulse wakes all waiting callers without opening the valve.
func (v *valve) pulse() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if was := v.wait.Load(); was != nil {
		wait := make(chan struct{})
		v.wait.Store(&wait)
		close(*was)
	}
}

func (v *valve) shut() bool { return v.wait.Load() != nil }

// await waits until the valve is open or the context ends.
func (v *valve) await(ctx context.Context) { v.awaitWhile(ctx, v.shut) }

// awaitWhile is await for callers that may also pass when shut returns false.
func (v *valve) awaitWhile(ctx context.Context, shut func() bool) {
	for ctx.Err() == nil {
		wait := v.wait.Load() // before calling shut: otherwise a pulse in between would be missed
		if wait == nil || !shut() {
			return
		}
		select {
		case <-*wait:
		case <-ctx.Done():
		}
	}
}
