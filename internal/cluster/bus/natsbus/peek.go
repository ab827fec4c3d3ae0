package natsbus

import (
	"context"
	"maps"
	"slices"

	"kumo/internal/cluster/bus"
)

// Peek reads what the servers that answer have of the registry, one of them at a time, and asks no majority: what it
// returns may be old, and nothing may be decided by it. It is for who wants to see how things are while too few servers
// run.
func (c *Cluster) Peek(ctx context.Context) ([]bus.Entry, error) {
	found := map[string]bus.Entry{}
	from := uint64(1)
	for {
		next := from
		q := query{From: from, Next: c.names.allRegistry(), Batch: 256, MaxBytes: readBytes}
		err := c.request(ctx, c.names.registry(), q, func(m stored) error {
			next = m.number + 1
			key := c.names.keyOf(m.subject)
			switch {
			case key == "":
			case deleted(m.header):
				delete(found, key)
			default:
				found[key] = bus.Entry{Key: key, Value: nonNil(m.data), Revision: m.number}
			}
			return nil
		})
		if err != nil {
			return nil, unavailable(err)
		}
		if next == from {
			return slices.Collect(maps.Values(found)), nil
		}
		from = next
	}
}

// Connect is Open for who only wants to Peek if it must: it starts no server, and does not wait until anything can be
// written. Ready does.
func Connect(ctx context.Context, cfg Config) (*Cluster, error) {
	return openWith(cfg, func(c *Cluster) error { return c.connect(ctx) })
}

// Ready waits until registry and logs can be written, or ctx ends: the error is an *AbsentError then, if servers are
// away or have no leader.
func (c *Cluster) Ready(ctx context.Context) error { return c.makeStreams(ctx) }
