package crawl

import (
	"errors"
	"fmt"
	"math"
	"sync"
)

// ErrLimit is why a crawl stopped that reached a limit; URLs may still wait.
var ErrLimit = errors.New("limit reached")

// A quota counts pages against the limits, those under way included, so that no limit is overshot.
type quota struct {
	pages, perHost int64 // 0: without limit

	mu       sync.Mutex
	done     int64
	taken    int64            // done or under way
	byHost   *counts          // done, by host; nil without a limit
	complete bool             // byHost has the pages of earlier runs
	underWay map[string]int64 // by host
}

func newQuota(cfg Config, done int64) *quota {
	q := &quota{pages: cfg.Pages, perHost: cfg.PagesPerHost, done: done, taken: done, underWay: map[string]int64{}}
	if q.perHost > 0 {
		q.byHost = newCounts()
	}
	return q
}

// before adds pages that a host has given in earlier runs.
func (q *quota) before(host string, pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(host, pages)
}

// setComplete says that all was told that before is to be told.
func (q *quota) setComplete() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.complete = true
}

// ofHost is how many pages a host has given; false if that is not known.
func (q *quota) ofHost(host string) (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.complete {
		return 0, false
	}
	return int64(q.byHost.get(host)), true
}

func (q *quota) add(host string, pages int64) {
	if q.perHost > 0 {
		q.byHost.set(host, uint32(min(int64(q.byHost.get(host))+pages, math.MaxUint32)))
	}
}

// room says what the limits have to say to one page more.
type room uint8

const (
	granted  room = iota
	notNow        // pages under way may use up what is left, or give it back
	used          // the crawl has its pages
	hostUsed      // the host has its pages
)

// take asks for one page of a host.
func (q *quota) take(host string) room {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ofHost int64
	if q.perHost > 0 {
		ofHost = int64(q.byHost.get(host))
	}
	switch {
	case q.perHost > 0 && ofHost >= q.perHost:
		return hostUsed
	case q.pages > 0 && q.done >= q.pages:
		return used
	case q.perHost > 0 && ofHost+q.underWay[host] >= q.perHost, q.pages > 0 && q.taken >= q.pages:
		return notNow
	}
	q.taken++
	q.begin(host, 1)
	return granted
}

// begin counts a host's pages under way.
func (q *quota) begin(host string, n int64) {
	if q.perHost == 0 {
		return
	}
	if q.underWay[host] += n; q.underWay[host] == 0 {
		delete(q.underWay, host)
	}
}

// settle says what became of a page that take granted, and reports whether the crawl has its pages now.
func (q *quota) settle(host string, answered bool) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.begin(host, -1)
	if !answered {
		q.taken--
		return false
	}
	q.done++
	q.add(host, 1)
	return q.pages > 0 && q.done >= q.pages
}

func limitErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrLimit, fmt.Sprintf(format, args...))
}
