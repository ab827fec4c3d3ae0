package nodes

import (
	"context"
	"sync/atomic"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A meter counts the bytes that a node gives to its bus: what a page costs the network, before what the bus itself
// adds.
type meter struct {
	bus.Bus
	sent   atomic.Int64 // messages to other nodes
	logged atomic.Int64 // entries of logs
	put    atomic.Int64 // values of the registry
}

var _ bus.Bus = (*meter)(nil)

func (m *meter) Send(to strategy.Node, data []byte) error {
	m.sent.Add(int64(len(data)))
	return m.Bus.Send(to, data)
}

func (m *meter) Append(ctx context.Context, log string, data []byte, after uint64) (uint64, error) {
	m.logged.Add(int64(len(data)))
	return m.Bus.Append(ctx, log, data, after)
}

func (m *meter) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	m.put.Add(int64(len(value)))
	return m.Bus.Put(ctx, key, value, rev)
}
