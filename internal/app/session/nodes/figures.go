package nodes

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// figures returns the work that the node reports.
func (m *membership) figures() node.Figures {
	c := m.crawl
	pages, counts := c.Stats.Pages(), c.Frontier.Counts()
	outbox, _ := m.engine.Links.Outbox()
	f := node.Figures{Pages: pages, Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs,
		Known: c.URLsKnown(), Outbox: outbox, InFlight: counts.Active, Lag: m.journal.Lag(), MessageBytes: m.bus.sent.Load(),
		ShippedBytes: m.bus.logged.Load(), RegistryBytes: m.bus.put.Load(), Moved: m.moved.Load()}
	f.Limit, f.Run = m.share.report(), m.counter.runTime()
	if m.counter.currentLimits().Bytes > 0 {
		f.Bytes = c.Stats.Totals().Bytes
	}
	now := time.Now()
	f.Rate, f.ByteRate = m.pageRate.At(now, pages), m.byteRate.At(now, c.Stats.Totals().Bytes)
	f.Duplicates = m.engine.Endpoint.Duplicates()
	f.Condition, f.Busy = c.Condition(now), m.busy(f.InFlight)
	if a := c.Job.Upload; a != nil {
		u := a.Status()
		f.Uploads = &u
	}
	if sinks := c.Job.Sinks; sinks != nil {
		f.Sinks = sinks()
		for i := range f.Sinks { // the report is in the registry
			f.Sinks[i].Why = strings.ToValidUTF8(f.Sinks[i].Why[:min(len(f.Sinks[i].Why), maxReason)], "")
		}
	}
	return f
}

const maxReason = 300 // bytes

// Placement returns how the node's hosts were assigned; nil while it takes no part in a crawl.
func (n *Node) Placement() *stats.Placement {
	if m := n.current.Load(); m != nil {
		return m.placement()
	}
	return nil
}

func (m *membership) placement() *stats.Placement {
	p := &stats.Placement{Duplicates: m.engine.Endpoint.Duplicates()}
	if f := m.node.Facts(); f != nil {
		p.HostRequests, p.ConnectTimeout = f.Requests, f.TimeoutMS/1000
		p.MinConnectTimeout, p.MaxConnectTimeout = f.LeastMS/1000, f.MostMS/1000
	}
	return p
}

// busy returns the share of the node's host slots in use.
func (m *membership) busy(inFlight int) float64 {
	return float64(inFlight) / float64(max(m.crawl.Job.Frontier.Hosts, 1))
}

// A meter counts the bytes that a node passes to its bus: the network cost of the crawl, without the overhead of the
// bus.
type meter struct {
	bus.Bus
	sent   atomic.Int64 // messages to other nodes
	logged atomic.Int64 // log entries
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
