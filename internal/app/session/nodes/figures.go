package nodes

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"kumo/internal/app/node"
	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// A pace is the rate of fetched pages per second.
type pace struct {
	mu    sync.Mutex // guards below
	pages int64
	when  time.Time
	rate  float64
}

// at returns the rate, given the number of pages fetched until now.
func (p *pace) at(now time.Time, pages int64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch d := now.Sub(p.when); {
	case p.when.IsZero():
		p.pages, p.when = pages, now
	case d >= rateWindow:
		p.rate = float64(pages-p.pages) / d.Seconds()
		p.pages, p.when = pages, now
	}
	return p.rate
}

// figures returns the work that the node reports.
func (m *membership) figures() node.Figures {
	c := m.crawl
	pages, counts := c.Stats.Pages(), c.Frontier.Counts()
	outbox, _ := m.engine.Links.Outbox()
	f := node.Figures{Pages: pages, Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs,
		Known: c.URLsKnown(), Outbox: outbox, InFlight: counts.Active, Lag: m.journal.Lag(), MessageBytes: m.bus.sent.Load(),
		ShippedBytes: m.bus.logged.Load(), RegistryBytes: m.bus.put.Load(), Moved: m.moved.Load()}
	now := time.Now()
	f.Rate = m.pace.at(now, pages)
	f.Condition, f.Busy = c.Condition(now), m.busy(f.InFlight)
	if a := c.Job.Upload; a != nil {
		u := a.Status()
		f.Uploads = &u
	}
	return f
}

// busy returns the share of the node's host slots in use.
func (m *membership) busy(inFlight int) float64 {
	return float64(inFlight) / float64(max(m.crawl.Job.Frontier.Hosts, 1))
}

const rateWindow = 3 * time.Second // for computing a rate

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
