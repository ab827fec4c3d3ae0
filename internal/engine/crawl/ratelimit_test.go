package crawl

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/fair"
)

// TestRateLimitLosesNoTime has visits wait for one request per second. Those that end their wait do not delay others.
func TestRateLimitLosesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRateLimit(1)
		began := time.Now()
		released, canceled := make(chan struct{}), make(chan bool, 3)
		if !r.wait(t.Context(), nil) || time.Since(began) != 0 {
			t.Fatal("the first request waits")
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { canceled <- r.wait(t.Context(), released) }() // has the reservation
		synctest.Wait()
		for range 2 {
			go func() { canceled <- r.wait(ctx, nil) }()
		}
		synctest.Wait()
		if n := r.waiting.Load(); n != 3 {
			t.Errorf("%d visits wait", n)
		}
		time.Sleep(300 * time.Millisecond)
		close(released)
		cancel()
		for range 3 {
			if <-canceled {
				t.Error("a visit that has ended its wait may send a request")
			}
		}
		if !r.wait(t.Context(), nil) || time.Since(began) != time.Second {
			t.Errorf("the next request is sent after %v", time.Since(began))
		}
		if r.waiting.Load() != 0 {
			t.Error("visits wait")
		}
		if unlimited := newRateLimit(0); !unlimited.wait(t.Context(), nil) || unlimited.wait(ctx, nil) {
			t.Error("no limit: a request waits, or is sent after the end")
		}
	})
}

// TestAReleasedHostDoesNotWaitForOtherCrawls: a visit that waits for the resources of several crawls ends when its host
// is released, and takes nothing.
func TestAReleasedHostDoesNotWaitForOtherCrawls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := fair.NewPool(1, 0.001)
		mine, other := pool.Add(1), pool.Add(1)
		if !other.AcquireSlot(t.Context(), nil) {
			t.Fatal("the other crawl waits")
		}
		for range 2 { // one for the time before
			if !other.AwaitAction(t.Context(), nil) {
				t.Fatal("the other crawl waits")
			}
		}
		began := time.Now()
		released, got := make(chan struct{}), make(chan bool, 2)
		for _, wait := range []func(*worker) bool{
			func(w *worker) bool { return w.acquireSlot(t.Context()) },
			func(w *worker) bool { return w.awaitRate(t.Context()) },
		} {
			w := &worker{visits: &visits{resources: mine, limits: &limits{rate: newRateLimit(0)}}, released: released}
			go func() { got <- wait(w) || w.slot }()
		}
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("a visit does not wait for the other crawl")
		}
		close(released)
		if a, b := <-got, <-got; a || b || time.Since(began) > 0 {
			t.Errorf("visits to a released host go on: %v, %v, after %v", a, b, time.Since(began))
		}
	})
}
