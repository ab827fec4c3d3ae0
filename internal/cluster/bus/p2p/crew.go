package p2p

import (
	"context"
	"sync"

	"kumo/internal/cluster/strategy"
)

// A crew is goroutines that run until ctx ends, and that Close waits for.
type taskGroup struct {
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // held to begin a goroutine, and to end ctx
	work   sync.WaitGroup
}

// Go runs f in a goroutine; false: it is too late.
func (c *taskGroup) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.work.Go(f)
	return true
}

// stop ends ctx. No goroutine begins any more.
func (c *taskGroup) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
}

func (c *taskGroup) isClosed() bool { return c.ctx.Err() != nil }

// notices tell the overlay of nodes that come and go, in order. Of a node only the latest waits to be told, so that it
// does not matter how slow the listener is.
type notices struct {
	mu    sync.Mutex // guards what follows
	order []strategy.Node
	up    map[strategy.Node]bool
	more  chan struct{} // has an element when there is something to tell
}

func newNotices() *notices {
	return &notices{up: map[strategy.Node]bool{}, more: make(chan struct{}, 1)}
}

func (n *notices) add(node strategy.Node, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, waits := n.up[node]; !waits {
		n.order = append(n.order, node)
	}
	n.up[node] = up
	select {
	case n.more <- struct{}{}:
	default:
	}
}

func (n *notices) run(ctx context.Context, reached, lost func(strategy.Node)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.more:
		}
		n.mu.Lock()
		order, up := n.order, n.up
		n.order, n.up = nil, map[strategy.Node]bool{}
		n.mu.Unlock()
		for _, node := range order {
			if f := map[bool]func(strategy.Node){true: reached, false: lost}[up[node]]; f != nil {
				f(node)
			}
		}
	}
}
