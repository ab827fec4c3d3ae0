package p2p

import (
	"context"
	"sync"

	"kumo/internal/cluster/strategy"
)

// A taskGroup runs goroutines until ctx ends. Close waits for them.
type taskGroup struct {
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex // held to start a goroutine, and to end ctx
	work   sync.WaitGroup
}

// Go runs f in a goroutine; false if the group is stopped.
func (c *taskGroup) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return false
	}
	c.work.Go(f)
	return true
}

// stop ends ctx. No goroutine starts any more.
func (c *taskGroup) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel()
}

func (c *taskGroup) isClosed() bool { return c.ctx.Err() != nil }

// notices reports connected and lost nodes to the overlay, in order. Of each node only the latest change is queued, so
// a slow listener does no harm.
type notices struct {
	mu    sync.Mutex // guards the fields below
	order []strategy.Node
	up    map[strategy.Node]bool
	more  chan struct{} // has an element while changes are queued
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
