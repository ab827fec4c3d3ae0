package policy

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"kumo/internal/bounded"
)

// ErrLimit is why a crawl stopped that reached a limit; URLs may still wait.
var ErrLimit = errors.New("limit reached")

// A Quota counts pages against the limits, those under way included, so that no limit is overshot.
type Quota struct {
	perHost   int64 // 0: without limit
	overrides *Overrides
	counts    bool // by host

	mu       sync.Mutex // guards what follows
	pages    int64      // 0: without limit
	done     int64
	taken    int64            // done or under way
	byHost   *bounded.Counts  // done, by host; nil without a limit
	complete bool             // byHost has the pages of earlier runs
	underWay map[string]int64 // by host
}

// NewQuota makes one for a crawl that has done so many pages, and may do so many in all and of each host (0: without
// limit), if the host has no limit of its own.
func NewQuota(pages, perHost, done int64, own *Overrides) *Quota {
	q := &Quota{pages: pages, perHost: perHost, done: done, taken: done, underWay: map[string]int64{}, overrides: own}
	if q.counts = perHost > 0 || own.BoundPages(); q.counts {
		q.byHost = bounded.NewCounts()
	}
	return q
}

// Counts reports whether pages are counted by host. If not, no host can have a limit any more.
func (q *Quota) Counts() bool { return q.counts }

// Most is how many pages a host may give; 0: without limit.
func (q *Quota) Most(host string) int64 {
	if own := q.overrides.OfHost(host).PagesPerHost; own != nil {
		return *own
	}
	return q.perHost
}

// Pages is how many the crawl may do in all; 0: without limit.
func (q *Quota) Pages() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pages
}

// SetPages sets how many pages the crawl may do in all.
func (q *Quota) SetPages(pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pages = pages
}

// AddEarlier adds pages that a host has given in earlier runs.
func (q *Quota) AddEarlier(host string, pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.add(host, pages)
}

// SetComplete says that all was told AddEarlier is to be told.
func (q *Quota) SetComplete() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.complete = true
}

// OfHost is how many pages a host has given; false if that is not known.
func (q *Quota) OfHost(host string) (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.complete {
		return 0, false
	}
	return int64(q.byHost.Get(host)), true
}

func (q *Quota) add(host string, pages int64) {
	if q.counts {
		q.byHost.Set(host, uint32(min(int64(q.byHost.Get(host))+pages, math.MaxUint32)))
	}
}

// A Grant is what the limits have to say to one page more.
type Grant uint8

// The answers.
const (
	Granted     Grant = iota
	NotNow            // pages under way may use up what is left, or give it back
	CrawlIsFull       // the crawl has its pages
	HostIsFull        // the host has its pages
)

// Take asks for one page of a host.
func (q *Quota) Take(host string) Grant {
	var most, ofHost int64
	if q.counts {
		most = q.Most(host)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.counts {
		ofHost = int64(q.byHost.Get(host))
	}
	switch {
	case most > 0 && ofHost >= most:
		return HostIsFull
	case q.pages > 0 && q.done >= q.pages:
		return CrawlIsFull
	case most > 0 && ofHost+q.underWay[host] >= most, q.pages > 0 && q.taken >= q.pages:
		return NotNow
	}
	q.taken++
	q.begin(host, 1)
	return Granted
}

// begin counts a host's pages under way.
func (q *Quota) begin(host string, n int64) {
	if !q.counts {
		return
	}
	if q.underWay[host] += n; q.underWay[host] == 0 {
		delete(q.underWay, host)
	}
}

// Settle says what became of a page that Take granted, and reports whether the crawl has its pages now.
func (q *Quota) Settle(host string, answered bool) (full bool) {
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

// Reset forgets the pages of a host.
func (q *Quota) Reset(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.counts {
		q.byHost.Set(host, 0)
	}
}

// LimitReached is an error that is ErrLimit and names the limit.
func LimitReached(limit string) error { return fmt.Errorf("%w: %s", ErrLimit, limit) }
