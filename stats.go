package kumo

import (
	"maps"
	"time"

	"kumo/internal/app/session"
)

// Stats are the counters of a crawl. With Out they cover all its runs, except Vetoed and Took, which cover this run.
type Stats struct {
	Pages      int64            // URLs answered, with any status
	Failed     int64            // URLs that failed permanently
	Skipped    int64            // URLs in scope that were excluded
	Waiting    int              // URLs in queues
	Known      int              // URLs found in scope
	Links      int64            // links on pages, including repeats
	Bytes      int64            // bytes over the wire
	Retries    int64            // repeated attempts
	Robots     int64            // robots.txt files fetched
	Duplicates int64            // pages whose body equals an earlier one; included in Pages
	Vetoed     int64            // requests and links vetoed by callbacks
	Statuses   map[int]int64    // Pages by HTTP status
	Failures   map[string]int64 // Failed by Error.Kind
	Rules      map[string]int64 // Skipped by rule: robots, exclude, depth, vetoed, ...
	Took       time.Duration    // time since Run started, until it ended
}

// Stats returns the counters: the current ones while the crawl runs, the final ones afterwards, zero before. The caller
// owns the maps.
func (c *Crawler) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return c.statsOf(c.running)
	}
	s := c.last
	s.Statuses, s.Failures, s.Rules = maps.Clone(s.Statuses), maps.Clone(s.Failures), maps.Clone(s.Rules)
	return s
}

// setRunning sets the session that Stats reports.
func (c *Crawler) setRunning(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = s
}

// saveLastStats stores the counters of the session before it is closed.
func (c *Crawler) saveLastStats() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last, c.running = c.statsOf(c.running), nil
}

func (c *Crawler) statsOf(s *session.Session) Stats {
	n := s.Stats.Snapshot()
	return Stats{Pages: n.Pages, Failed: n.Failed, Skipped: n.Skipped, Waiting: s.URLsWaiting(), Known: s.URLsKnown(),
		Links: n.Links, Bytes: n.Bytes, Retries: n.Retries, Robots: n.Robots, Duplicates: n.Duplicates,
		Vetoed: c.vetoes.Load(), Statuses: n.Statuses, Failures: n.Failures, Rules: n.Rules, Took: time.Since(c.began)}
}
