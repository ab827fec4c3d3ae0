package fair

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// busy acts for a user with many goroutines, each for a while, until ctx ends. It returns the number of actions.
func busy(ctx context.Context, all *sync.WaitGroup, u *User, goroutines int, most *atomic.Int64) *atomic.Int64 {
	var n, inUse atomic.Int64
	for range goroutines {
		all.Go(func() {
			for u.AcquireSlot(ctx, nil) {
				if now := inUse.Add(1); now > most.Load() {
					most.Store(now)
				}
				if u.AwaitAction(ctx, nil) {
					time.Sleep(100 * time.Millisecond)
					n.Add(1)
				}
				inUse.Add(-1)
				u.ReleaseSlot()
			}
		})
	}
	return &n
}

func share(a, b *atomic.Int64) float64 { return float64(a.Load()) / float64(a.Load()+b.Load()) }

// Slots are divided by weight, a changed weight applies at once, and all slots go to the only user.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(8, 0)
		a, b := p.Add(3), p.Add(1)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mostA, mostB atomic.Int64
		na := busy(ctx, &all, a, 20, &mostA)
		time.Sleep(time.Second)
		if mostA.Load() != 8 {
			t.Errorf("the only user had %d of 8 slots", mostA.Load())
		}
		during, enough := context.WithCancel(ctx)
		nb := busy(during, &all, b, 20, &mostB)
		time.Sleep(time.Second)
		na.Store(0)
		nb.Store(0)
		time.Sleep(10 * time.Second)
		if got := share(na, nb); got < 0.74 || got > 0.76 || mostB.Load() > 8 {
			t.Errorf("the user with 3 of 4 shares had %.2f of the slots", got)
		}
		a.SetWeight(1)
		time.Sleep(time.Second)
		na.Store(0)
		nb.Store(0)
		time.Sleep(10 * time.Second)
		if got := share(na, nb); got < 0.48 || got > 0.52 {
			t.Errorf("one of two equal users had %.2f of the slots", got)
		}
		if total := na.Load() + nb.Load(); total < 780 || total > 808 {
			t.Errorf("%d actions in 10 s, want about 800", total)
		}
		enough()
		time.Sleep(time.Second)
		mostA.Store(0)
		time.Sleep(time.Second)
		if mostA.Load() != 8 {
			t.Errorf("after the other user has ended, the first had %d of 8 slots", mostA.Load())
		}
		cancel()
		all.Wait()
		if p.used != 0 {
			t.Errorf("%d slots are lost", p.used)
		}
	})
}

// A rate is divided by weight, and what a user does not use goes to the other.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(0, 40)
		a, b := p.Add(1), p.Add(3)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var most atomic.Int64
		na := busy(ctx, &all, a, 100, &most)
		time.Sleep(time.Second)
		na.Store(0)
		time.Sleep(10 * time.Second)
		if n := na.Load(); n < 395 || n > 405 {
			t.Errorf("the only user had %d actions in 10 s, want 400", n)
		}
		nb := busy(ctx, &all, b, 100, &most)
		time.Sleep(time.Second)
		na.Store(0)
		nb.Store(0)
		time.Sleep(10 * time.Second)
		if got := share(nb, na); got < 0.74 || got > 0.76 {
			t.Errorf("the user with 3 of 4 shares had %.2f of the rate", got)
		}
		if n := na.Load() + nb.Load(); n < 395 || n > 405 {
			t.Errorf("%d actions in 10 s, want 400", n)
		}
		cancel()
		all.Wait()
	})
}

// A user that waited in vain takes nothing.
func TestCanceled(t *testing.T) {
	p := NewPool(1, 0.001)
	a, b := p.Add(1), p.Add(1)
	if !a.AcquireSlot(t.Context(), nil) {
		t.Fatal("the first user waits")
	}
	for range 2 { // one for the time before
		if !a.AwaitAction(t.Context(), nil) {
			t.Fatal("the first user waits")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b.AcquireSlot(ctx, nil) || b.AwaitAction(ctx, nil) {
		t.Error("a user goes on after the end of its context")
	}
	end := make(chan struct{})
	close(end)
	if b.AcquireSlot(t.Context(), end) || b.AwaitAction(t.Context(), end) {
		t.Error("a user goes on after it has ended its wait")
	}
	a.ReleaseSlot()
	if !b.AcquireSlot(t.Context(), nil) || p.used != 1 {
		t.Errorf("%d slots used", p.used)
	}
	if len(b.queue)+len(b.actions) > 0 {
		t.Errorf("%d and %d waits are left", len(b.queue), len(b.actions))
	}
	b.ReleaseSlot()
	b.Remove()
	if len(p.users) != 1 || p.used != 0 {
		t.Errorf("%d users, %d slots", len(p.users), p.used)
	}
}
