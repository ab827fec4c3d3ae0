package frontier

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// gaps is a duel in which other calls are made while a call waits for the disk.
type gaps struct {
	*duel
	within bool
	left   int // calls still allowed during this step
	times  int
}

// wait is called before each disk operation.
func (g *gaps) wait(string) {
	if g.duel == nil || g.f == nil {
		return // the frontier is being opened
	}
	if !g.f.mu.TryLock() {
		g.t.Error("somebody waits for the disk with the frontier locked")
		return
	}
	g.f.mu.Unlock()
	if g.within || g.left == 0 || g.t.Failed() || g.rng.IntN(3) > 0 {
		return
	}
	g.left--
	g.within = true
	defer func() { g.within = false }()
	g.times++
	done := make(chan struct{})
	go func() { // in its own goroutine, as a waiting call cannot end half-way
		defer close(done)
		for range 1 + g.rng.IntN(3) {
			g.meanwhile()
		}
	}()
	<-done
}

// meanwhile makes calls that do not wait for the interrupted call.
func (g *gaps) meanwhile() {
	d, key := g.duel, g.key()
	if d.looks {
		d.push(key, d.rng.IntN(60))
		return
	}
	switch d.rng.IntN(10) {
	case 0, 1, 2:
		d.push(key, 1+d.rng.IntN(4))
	case 3:
		d.push(key, d.rng.IntN(300))
	case 4, 5:
		d.end()
	case 6:
		if !d.waits {
			d.park(key)
		}
	case 7:
		if d.spared == nil && !d.waits {
			d.detach(key)
		}
	case 8:
		if d.cut == nil {
			d.checkpoint()
		}
	case 9:
		time.Sleep(time.Duration(d.rng.IntN(3000)) * time.Millisecond)
	}
	if d.waits { // for an item that would be removed
		d.same()
		return
	}
	v, work, _, err := d.f.poll()
	switch {
	case errors.Is(err, ErrDrained):
	case err != nil:
		d.t.Fatal(err)
	case work:
		if err := d.f.worker.work(); err != nil {
			d.t.Fatal(err)
		}
	case v != nil:
		d.took(v)
	}
	d.same()
}

// While a call waits for the disk, other calls do not change the result: each URL is handed out once and in order, and
// a checkpoint has the state of its cut.
func TestWhatHappensWhileTheDiskIsWaitedFor(t *testing.T) {
	times := 0
	for _, memory := range []int64{8 << 10, 128 << 10} {
		for range 3 {
			seed := rand.Uint64()
			synctest.Test(t, func(t *testing.T) {
				t.Logf("seed %d", seed)
				g := &gaps{}
				cfg := Config{Hosts: 400, Delay: time.Second, Memory: memory, Dir: t.TempDir(),
					Disk: vfstest.NewSlow(vfs.OS, g.wait)}
				g.duel = newDuel(t, seed, cfg)
				g.loose = true
				for range 6 {
					for range g.rng.IntN(100) {
						if t.Failed() {
							t.FailNow()
						}
						g.left = 3
						if g.step(); g.rng.IntN(40) == 0 {
							g.checkpoint()
						}
					}
					f := g.f
					g.f = nil // no more calls from here on
					g.crashed(f)
				}
				g.left = 0
				g.drain()
				times += g.times
			})
		}
	}
	if times == 0 {
		t.Error("nothing happened meanwhile")
	}
}
