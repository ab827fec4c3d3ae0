package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

var _ bus.Bus = (*Bus)(nil)

// A Bus is one node's bus, over its process's Cluster.
type Bus struct {
	cluster *Cluster
	node    strategy.Node
	ctx     context.Context // ends with Close, or with the cluster
	end     context.CancelFunc
}

// Send sends a message to a node.
func (b *Bus) Send(to strategy.Node, data []byte) error {
	if err := bus.CheckMessage(to, data); err != nil {
		return err
	}
	if b.isClosed() {
		return bus.ErrClosed
	}
	err := b.cluster.conn.Publish(b.cluster.names.message(to, b.node), data)
	switch {
	case err == nil, errors.Is(err, nats.ErrReconnectBufExceeded): // the message is lost
		return nil
	case errors.Is(err, nats.ErrConnectionClosed):
		return bus.ErrClosed
	}
	return fmt.Errorf("send to %s: %w", to, withDescription(err))
}

// Receive calls f with each message to this node.
func (b *Bus) Receive(ctx context.Context, f func(from strategy.Node, data []byte)) error {
	if b.isClosed() {
		return bus.ErrClosed
	}
	come := make(chan *nats.Msg, 4096) // while f is busy, further messages are lost
	sub, err := b.cluster.conn.ChanSubscribe(b.cluster.names.messages(b.node), come)
	if err != nil {
		return fmt.Errorf("receive messages to %s: %w", b.node, asClosed(err))
	}
	defer drop(sub)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-b.ctx.Done():
			return bus.ErrClosed
		case m := <-come:
			f(sender(m.Subject), m.Data)
		}
	}
}

func asClosed(err error) error {
	if errors.Is(err, nats.ErrConnectionClosed) {
		return bus.ErrClosed
	}
	return withDescription(err)
}

// Close interrupts blocked calls. The process's connection stays open.
func (b *Bus) Close() error {
	b.end()
	return nil
}

func (b *Bus) isClosed() bool { return b.ctx.Err() != nil }
