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

// ErrNoReply is a crawl whose nodes were reached and do not answer.
var ErrNoReply = errors.New("the nodes that were reached do not answer")

const (
	retryInterval = time.Second // a question is asked again
	maxAttempts   = 3           // questions to one node until the next is asked
)

// A Client asks nodes. Its methods may be called by many goroutines at once.
type Client struct {
	bus   bus.Messenger
	nodes []strategy.Node
	stop  context.CancelFunc
	ended chan struct{}

	mu       sync.Mutex // guards below
	waiting  map[uint64]chan Response
	lastNode strategy.Node // who has answered last
}

// NewClient makes a client that asks one of some nodes after the other until one answers. It receives what comes over
// the messenger, which nobody else may; the caller closes both.
func NewClient(b bus.Messenger, nodes []strategy.Node) *Client {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{bus: b, nodes: nodes, stop: stop, ended: make(chan struct{}), waiting: map[uint64]chan Response{}}
	go func() {
		defer close(c.ended)
		_ = b.Receive(ctx, c.receive) // who waits for an answer waits in vain
	}()
	return c
}

// Close ends the client.
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

// Do asks a question until it is answered, or ctx ends. The error is the node's, too.
func (c *Client) Do(ctx context.Context, q Request) (*Response, error) {
	q.ID = rand.Uint64()
	data, err := frame(KindRequest, &q)
	if err != nil {
		return nil, err
	}
	if len(data) > bus.MaxData {
		return nil, fmt.Errorf("the question has %d bytes, more than the %d of a message", len(data), bus.MaxData)
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

// first is the index of the node that is asked first: who has answered last. mu is held.
func (c *Client) first() int { return max(slices.Index(c.nodes, c.lastNode), 0) }
