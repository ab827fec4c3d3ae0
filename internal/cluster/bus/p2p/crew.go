package p2p

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"kumo/internal/cluster/strategy"
)

// A crew is goroutines that Close waits for. None is begun once it has.
type crew struct {
	mu     sync.Mutex // guards closed, and with it that nothing is added while wait waits
	closed bool
	work   sync.WaitGroup
}

// Go runs f in a goroutine; false: it is too late.
func (c *crew) Go(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

func (c *crew) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.work.Wait()
}

// A budget is bytes that several may hold together.
type budget struct{ *semaphore.Weighted }

func newBudget(n int64) *budget { return &budget{semaphore.NewWeighted(n)} }

// notices tell the overlay of nodes that come and go, in order. Of a node only the latest waits to be told, so that it
// does not matter how slow the listener is.
type notices struct {
	mu    sync.Mutex // guards what follows
	order []strategy.Node
	up    map[strategy.Node]bool
	more  chan struct{} // has an element when there is something to tell
}

func (n *notices) add(node strategy.Node, up bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.begin()
	if _, waits := n.up[node]; !waits {
		n.order = append(n.order, node)
	}
	n.up[node] = up
	select {
	case n.more <- struct{}{}:
	default:
	}
}

// begin makes what the zero value has not. mu is held.
func (n *notices) begin() {
	if n.up == nil {
		n.up, n.more = map[strategy.Node]bool{}, make(chan struct{}, 1)
	}
}

// run tells, until ctx ends.
func (n *notices) run(ctx context.Context, reached, lost func(strategy.Node)) {
	n.mu.Lock()
	n.begin()
	n.mu.Unlock()
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
