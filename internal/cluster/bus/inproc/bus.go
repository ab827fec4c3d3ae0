package inproc

import (
	"context"
	"fmt"
	"sync"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// inboxSize is how many messages wait for a node; more are lost.
const inboxSize = 4096

var _ bus.Bus = (*Bus)(nil)

// A Bus is one node's place at a Hub.
type Bus struct {
	hub       *Hub
	node      strategy.Node
	inbox     chan message
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	receiving sync.Mutex // held by the one who receives, so that a second call waits instead of sharing messages
}

type message struct {
	from strategy.Node
	data []byte
}

// Send sends a message to a node.
func (b *Bus) Send(to strategy.Node, data []byte) error {
	if err := bus.CheckMessage(to, data); err != nil {
		return err
	}
	if b.isClosed() {
		return bus.ErrClosed
	}
	b.hub.send(message{b.node, data}, to)
	return nil
}

// Receive calls f with each message that comes.
func (b *Bus) Receive(ctx context.Context, f func(from strategy.Node, data []byte)) error {
	b.receiving.Lock()
	defer b.receiving.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.ctx.Done():
			return bus.ErrClosed
		case m := <-b.inbox:
			f(m.from, m.data)
		}
	}
}

// Close ends what waits, and takes the node from the hub.
func (b *Bus) Close() error {
	b.end()
	b.hub.mu.Lock()
	defer b.hub.mu.Unlock()
	if b.hub.nodes[b.node] == b {
		delete(b.hub.nodes, b.node)
	}
	return nil
}

func (b *Bus) isClosed() bool { return b.ctx.Err() != nil }

// ready says why the registry and the logs cannot be asked. hub.mu is held.
func (b *Bus) ready(ctx context.Context) error {
	if b.isClosed() {
		return bus.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", bus.ErrUnavailable, err)
	}
	return b.hub.checkReachable(b.node)
}
