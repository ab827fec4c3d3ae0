package crawl

import (
	"context"
	"sync"
	"sync/atomic"
)

// A valve holds workers back while it is shut. The zero gate is open.
type valve struct {
	mu   sync.Mutex                    // held by who sets it
	wait atomic.Pointer[chan struct{}] // closed when it opens; nil while it is open
}

func (g *valve) set(shut bool) {
	if shut == g.shut() {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch was := g.wait.Load(); {
	case shut && was == nil:
		wait := make(chan struct{})
		g.wait.Store(&wait)
	case !shut && was != nil:
		g.wait.Store(nil)
		close(*was)
	}
}

func (g *valve) shut() bool { return g.wait.Load() != nil }

// await waits until it is open, or the context ends.
func (g *valve) await(ctx context.Context) {
	for wait := g.wait.Load(); wait != nil && ctx.Err() == nil; wait = g.wait.Load() {
		select {
		case <-*wait:
		case <-ctx.Done():
		}
	}
}
