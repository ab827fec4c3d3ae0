package kumo

import (
	"maps"
	"time"

	"kumo/internal/app/session"
)

// Stats are a crawl's counters. With Out they cover all its runs, but for Vetoed and Took, which are this run's.
type Stats struct {
	Pages      int64            // URLs that were answered, whatever with
	Failed     int64            // URLs that were not, for good
	Skipped    int64            // URLs within reach that were left out
	Waiting    int              // URLs that wait
	Known      int              // URLs that were met within reach
	Links      int64            // that pages have, repeats included
	Bytes      int64            // over the wire
	Retries    int64            // visits that were made again
	Robots     int64            // robots.txt files fetched
	Duplicates int64            // of Pages, those with the body of an earlier one
	Vetoed     int64            // requests and links that callbacks have vetoed
	Statuses   map[int]int64    // Pages, by HTTP status
	Failures   map[string]int64 // Failed, by Error.Kind
	Rules      map[string]int64 // Skipped, by the rule: robots, exclude, depth, vetoed, ...
	Took       time.Duration    // since Run began, until it ended
}

// Stats returns the counters as they are: while the crawl runs, those of this moment; afterwards the last; before,
// none. The maps are the caller's.
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

// setRunning has Stats count a session.
func (c *Crawler) setRunning(s *session.Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running = s
}

// keepLastStats keeps the counters of the session, which is about to be closed.
func (c *Crawler) keepLastStats() {
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
