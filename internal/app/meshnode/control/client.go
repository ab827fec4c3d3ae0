package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// ErrNoReply means that the connected nodes do not answer.
var ErrNoReply = errors.New("the connected nodes do not answer")

const (
	retryInterval = time.Second // between repetitions of a request
	maxAttempts   = 3           // per node, before the next node is tried
)

// A Client sends requests to nodes. It is safe for concurrent use.
type Client struct {
	bus   bus.Messenger
	nodes []strategy.Node
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex // guards below
	waiting  map[uint64]chan Response
	lastNode strategy.Node // the node that answered last
}

// NewClient returns a client that tries one node after the other until one answers. It receives the messenger's
// messages exclusively. The caller closes both.
func NewClient(b bus.Messenger, nodes []strategy.Node) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{bus: b, nodes: nodes, stop: stop, ended: make(chan struct{}), waiting: map[uint64]chan Response{}}
	go func() {
		defer close(c.ended)
		_ = b.Receive(ctx, c.receive) // after an error, requests time out
	}()
	return c
}

// Close stops the client.
func (c *Client) Close() {
	c.stop()
	<-c.ended
}

func (c *Client) receive(from strategy.Node, data []byte) {
	var a Response
	if len(data) == 0 || data[0] != KindReply || json.Unmarshal(data[1:], &a) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if waits := c.waiting[a.ID]; waits != nil {
		delete(c.waiting, a.ID)
		c.lastNode = from
		waits <- a
	}
}

// Do sends a request repeatedly until it is answered or ctx ends. An error reported by the node is returned, too.
func (c *Client) Do(ctx context.Context, q Request) (*Response, error) {
	q.ID = rand.Uint64()
	data, err := frame(KindRequest, &q)
	if err != nil {
		return nil, err
	}
	if len(data) > bus.MaxData {
		return nil, fmt.Errorf("the request has %d bytes, more than the maximum of %d", len(data), bus.MaxData)
	}
	waits := make(chan Response, 1)
	c.mu.Lock()
	c.waiting[q.ID] = waits
	first := c.first()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, q.ID)
	}()
	tick := time.NewTicker(retryInterval)
	defer tick.Stop()
	for try := 0; ; try++ {
		to := c.nodes[(first+try/maxAttempts)%len(c.nodes)]
		if err := c.bus.Send(to, data); err != nil && !errors.Is(err, bus.ErrUnavailable) {
			return nil, err
		}
		select {
		case a := <-waits:
			return &a, a.Err()
		case <-tick.C:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return nil, context.Canceled
			}
			return nil, fmt.Errorf("%w: %v", ErrNoReply, c.nodes)
		}
	}
}

// first returns the index of the first node to try, which is the node that answered last. mu must be held.
func (c *Client) first() int { return max(slices.Index(c.nodes, c.lastNode), 0) }
