package natsbus

import (
	"context"
	"maps"
	"slices"

	"kumo/internal/cluster/bus"
)

// Peek reads the registry from any servers that answer, without a majority. The result may be outdated, so it is only
// for display, for example while too few servers run.
func (c *Cluster) Peek(ctx context.Context) ([]bus.Entry, error) {
	found := map[string]bus.Entry{}
	from := uint64(1)
	for {
		next := from
		q := query{From: from, Next: c.names.allRegistry(), Batch: 256, MaxBytes: readBytes}
		more, err := c.request(ctx, c.names.registry(), q, func(m stored) error {
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
		if !more || next == from {
			return slices.Collect(maps.Values(found)), nil
		}
		from = next
	}
}

// Connect is Open for callers that can work with Peek alone: it starts no server, and does not wait until registry and
// logs can be written. Ready does.
func Connect(ctx context.Context, cfg Config) (*Cluster, error) {
	return openWith(cfg, func(c *Cluster) error {
		c.adopts = true
		err := c.connect(ctx)
		c.creates = cfg.NATS != "" && !c.cfg.Shared // the nodes of shared servers create the streams of a crawl
		return err
	})
}

// Ready waits until registry and logs can be written, or ctx ends. If servers do not answer or have no leader, the
// error is an *AbsentError.
func (c *Cluster) Ready(ctx context.Context) error { return c.makeStreams(ctx) }
