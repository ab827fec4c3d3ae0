package inproc

import (
	"context"
	"fmt"
	"sync"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// inboxSize is the number of messages that are queued for a node; more are lost.
const inboxSize = 4096

var _ bus.Bus = (*Bus)(nil)

// A Bus is one node's connection to a Hub.
type Bus struct {
	hub       *Hub
	node      strategy.Node
	inbox     chan message
	ctx       context.Context // canceled by Close
	end       context.CancelFunc
	receiving sync.Mutex // held by Receive, so that a second call waits instead of sharing messages
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

// Receive calls f with each message to this node.
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

// Close interrupts blocked calls, and removes the node from the hub.
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

// ready returns an error unless the node can use the registry and the logs. hub.mu is held.
func (b *Bus) ready(ctx context.Context) error {
	if b.isClosed() {
		return bus.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", bus.ErrUnavailable, err)
	}
	return b.hub.checkReachable(b.node)
}
