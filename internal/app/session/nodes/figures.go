package nodes

import (
	"time"

	"kumo/internal/app/node"
	"kumo/internal/state/stall"
)

// A pace is how many pages there were at a time.
type pace struct {
	pages int64
	when  time.Time
	rate  float64
}

// figures are what others are told of the node's work.
func (m *membership) figures() node.Figures {
	c := m.crawl
	pages, counts := c.Stats.Pages(), c.Frontier.Counts()
	outbox, _ := m.engine.Links.Outbox()
	f := node.Figures{Pages: pages, Hosts: counts.Active + counts.Waiting + counts.Backing, Waiting: counts.URLs,
		Known: c.URLsKnown(), Outbox: outbox, InFlight: counts.Active, Lag: m.journal.Lag(), MessageBytes: m.bus.sent.Load(),
		ShippedBytes: m.bus.logged.Load(), RegistryBytes: m.bus.put.Load(), Moved: m.moved.Load()}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if d := now.Sub(m.last.when); m.last.when.IsZero() {
		m.last = pace{pages: pages, when: now}
	} else if d >= paceTime {
		m.last = pace{pages, now, float64(pages-m.last.pages) / d.Seconds()}
	}
	f.Rate = m.last.rate
	if o := c.Outage(); o.CutOff {
		f.CutOff = max(now.Sub(o.Since).Seconds(), 0)
		f.CutOffWhy = o.Why
	}
	o := c.Outlook()
	f.EndsIn, f.Growth, f.Forecast = o.Forecast.AtLeast, o.Forecast.Growth, o.Forecast.Words
	if a := o.Stall; a.Kind != stall.None {
		f.Stalled, f.StalledBy, f.StallWhy, f.StallDo = a.For.Seconds(), string(a.Kind), a.Words, a.Do
	}
	f.Busy = m.busy(f.InFlight)
	if a := c.Job.Away; a != nil {
		u := a.Status()
		f.Uploads = &u
	}
	return f
}

// busy is which share of the node's places so many requests take.
func (m *membership) busy(inFlight int) float64 {
	return float64(inFlight) / float64(max(m.crawl.Job.Frontier.Hosts, 1))
}

const paceTime = 3 * time.Second // over which a rate is taken
