package sim

import (
	"time"

	"kumo/internal/cluster/member/driver"
)

// Work is what the nodes of a crawl did until all was fetched.
type Work struct {
	Nodes    []NodeWork
	Time     time.Duration // from the first request to the end of the last
	Messages WorkMessages
	Appended int // entries of the strategy's log
	Figures
}

// NodeWork is what one of them did.
type NodeWork struct {
	Pages int
	Busy  float64       // part of the crawl's time in which its workers were busy, the mean of all
	Ended time.Duration // when its last request did, counted from the crawl's first
}

// WorkMessages are how many messages nodes sent each other.
type WorkMessages struct {
	Strategy int // between strategies
	Links    int // batches of links, and answers to them
	Other    int // hosts that move, and what ends a crawl
}

func (m *WorkMessages) count(k driver.Kind) {
	switch k {
	case driver.KindStrategy:
		m.Strategy++
	case driver.KindLinks, driver.KindLinksAnswer:
		m.Links++
	default:
		m.Other++
	}
}

// Crawl runs one seed without faults, and says what the nodes did.
func Crawl(cfg Config, seed uint64) (Work, []Violation) {
	cfg.FaultEvery = -1
	w := newWorld(cfg.withDefaults(), seed, -1, false)
	w.run()
	first, last := forever, moment(0)
	for _, m := range w.machines {
		if m.fetched > 0 {
			first, last = min(first, m.first), max(last, m.last)
		}
	}
	work := Work{Messages: w.messages, Appended: int(w.log.last), Figures: w.figures}
	work.Time = max(0, last-first)
	for _, m := range w.machines {
		n := NodeWork{Pages: m.fetched}
		if m.fetched > 0 {
			n.Busy = float64(m.busyTime) / float64(work.Time) / float64(w.cfg.Workers)
			n.Ended = m.last - first
		}
		work.Nodes = append(work.Nodes, n)
	}
	return work, w.violations
}

func (m *machine) visited(v *visit, now moment) {
	if m.fetched == 0 {
		m.first = v.leaseChecked
	}
	m.fetched++
	m.first, m.last = min(m.first, v.leaseChecked), now
	m.busyTime += now - v.leaseChecked
}
