package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"kumo/internal/base/bounded"
)

// ErrLimit is the reason why a crawl stopped that reached a limit. URLs may still be pending.
var ErrLimit = errors.New("limit reached")

// A Quota counts pages, including those in progress, against the limits, so that no limit is exceeded.
type Quota struct {
	mu       sync.Mutex // guards all fields
	pages    int64      // 0: no limit
	done     int64
	used     int64 // done or in progress
	share    int64 // pages that this node may fetch of the crawl's limit; negative: no limit
	hosts    tally
	domains  tally
	bytes    byteTally
	complete bool // the tallies include the pages of earlier runs
}

type byteTally struct {
	limit     int64 // 0: no limit
	overrides *Overrides
	received  map[string]int64 // nil: no limit
}

func newByteTally(most int64, own *Overrides) byteTally {
	if most <= 0 && !own.LimitsBytes() {
		return byteTally{}
	}
	return byteTally{most, own, map[string]int64{}}
}

func (t *byteTally) add(host string, n int64) {
	if t.received == nil {
		return
	}
	if _, known := t.received[host]; !known {
		host = strings.Clone(host)
	}
	t.received[host] += n
}

func (t *byteTally) full(host string) bool {
	if t.received == nil {
		return false
	}
	most := t.limit
	if own := t.overrides.ForHost(host).BytesPerHost; own != nil {
		most = *own
	}
	return most > 0 && t.received[host] >= most
}

// A tally counts pages by name.
type tally struct {
	limit     int64            // 0: no limit
	overrides *Overrides       // limits of single hosts
	done      *bounded.Counts  // nil: no limits
	inFlight  map[string]int64 // by name
}

func newTally(most int64, own *Overrides) tally {
	if most <= 0 && !own.LimitsPages() {
		return tally{}
	}
	return tally{limit: most, overrides: own, done: bounded.NewCounts(), inFlight: map[string]int64{}}
}

// isLimited reports whether there are limits.
func (t *tally) isLimited() bool { return t.done != nil }

func (t *tally) limitOf(name string) int64 {
	if own := t.overrides.ForHost(name).PagesPerHost; own != nil {
		return *own
	}
	return t.limit
}

func (t *tally) get(name string) int64 {
	if !t.isLimited() || name == "" {
		return 0
	}
	return int64(t.done.Get(name))
}

func (t *tally) add(name string, pages int64) {
	if t.isLimited() && name != "" {
		t.done.Set(name, uint32(min(t.get(name)+pages, math.MaxUint32)))
	}
}

// full reports whether a name has reached its limit; may reports whether it has if all pages in progress are answered.
func (t *tally) full(name string) (full, may bool) {
	if !t.isLimited() || name == "" {
		return false, false
	}
	most := t.limitOf(name)
	if most == 0 {
		return false, false
	}
	n := t.get(name)
	return n >= most, n+t.inFlight[name] >= most
}

// begin adds n pages in progress.
func (t *tally) begin(name string, n int64) {
	if !t.isLimited() || name == "" {
		return
	}
	if t.inFlight[name] += n; t.inFlight[name] == 0 {
		delete(t.inFlight, name)
	}
}

// Limits are limits of pages and bytes. 0 means no limit.
type Limits struct {
	Pages     int64
	PerHost   int64
	PerDomain int64 // of a registered domain
	Bytes     int64 // of a host, over the wire

	Overrides *Overrides // limits of single hosts, which replace PerHost or Bytes
}

// NewQuota returns a quota for a crawl that has done the given number of pages.
func NewQuota(l Limits, done int64) *Quota {
	return &Quota{pages: l.Pages, done: done, used: done, share: -1, hosts: newTally(l.PerHost, l.Overrides),
		domains: newTally(l.PerDomain, nil), bytes: newByteTally(l.Bytes, l.Overrides)}
}

// CountsPages reports whether pages are counted by host. If not, limits of hosts can no longer be set.
func (q *Quota) CountsPages() bool { return q.hosts.isLimited() }

// HostLimit returns the maximum number of pages of a host; 0: no limit.
func (q *Quota) HostLimit(host string) int64 { return q.hosts.limitOf(host) }

// PageLimit returns the maximum number of pages of the crawl; 0: no limit.
func (q *Quota) PageLimit() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pages
}

// SetPageLimit sets the maximum number of pages of the crawl.
func (q *Quota) SetPageLimit(pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pages = pages
}

// SetShare limits the pages of this node, over all runs, to its share of the limit of all nodes; a negative share means
// no limit. It returns how many pages the node may fetch: the share, or more if more are done or in progress.
func (q *Quota) SetShare(pages int64) (ceiling int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.share = pages; pages >= 0 {
		q.share = max(pages, q.used)
	}
	return q.share
}

// ShareUsed reports whether the pages that are done or in progress use up the node's share.
func (q *Quota) ShareUsed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shareUsed()
}

func (q *Quota) shareUsed() bool { return q.share >= 0 && q.used >= q.share }

// Done returns the number of pages of the crawl, or of this node.
func (q *Quota) Done() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done
}

// Used returns the number of pages that are done or in progress.
func (q *Quota) Used() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used
}

// AddEarlier adds pages of a host from earlier runs or from other nodes.
func (q *Quota) AddEarlier(host string, pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hosts.add(host, pages)
}

// AddEarlierOfDomain adds pages of a registered domain from earlier runs.
func (q *Quota) AddEarlierOfDomain(domain string, pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.domains.add(domain, pages)
}

// SetComplete marks the counts of earlier runs as fully loaded.
func (q *Quota) SetComplete() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.complete = true
}

// HostPages returns the number of pages of a host; false if it is unknown.
func (q *Quota) HostPages(host string) (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.complete || !q.hosts.isLimited() {
		return 0, false
	}
	return q.hosts.get(host), true
}

// A Grant is the result of Acquire.
type Grant uint8

// Grants.
const (
	Granted       Grant = iota
	NotNow              // pages in progress may use up the rest, or return it
	ShareIsUsed         // this node has used its share of the page limit; it may get more
	CrawlIsFull         // the crawl has reached its page limit
	HostIsFull          // the host has reached its page limit
	DomainIsFull        // the registered domain has reached its page limit
	HostBytesFull       // the host has reached its byte limit
)

// Acquire reserves a page of a host and of a registered domain; "" means no limit.
func (q *Quota) Acquire(host, domain string) Grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	hostFull, hostMay := q.hosts.full(host)
	domainFull, domainMay := q.domains.full(domain)
	switch {
	case hostFull:
		return HostIsFull
	case q.bytes.full(host):
		return HostBytesFull
	case domainFull:
		return DomainIsFull
	case q.pages > 0 && q.done >= q.pages:
		return CrawlIsFull
	case q.shareUsed():
		return ShareIsUsed
	case hostMay, domainMay, q.pages > 0 && q.used >= q.pages:
		return NotNow
	}
	q.used++
	q.hosts.begin(host, 1)
	q.domains.begin(domain, 1)
	return Granted
}

// CountsBytes reports whether bytes are counted by host. If not, byte limits of hosts can no longer be set.
func (q *Quota) CountsBytes() bool { return q.bytes.received != nil }

// AddBytes adds bytes received from a host, in this run or an earlier one.
func (q *Quota) AddBytes(host string, n int64) {
	if q.bytes.received == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes.add(host, n)
}

// Finish ends the reservation of a page that Acquire granted. It reports whether the crawl has reached its page limit.
func (q *Quota) Finish(host, domain string, answered bool) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hosts.begin(host, -1)
	q.domains.begin(domain, -1)
	if !answered {
		q.used--
		return false
	}
	q.done++
	q.hosts.add(host, 1)
	q.domains.add(domain, 1)
	return q.pages > 0 && q.done >= q.pages
}

// Reset sets the page count of a host to 0.
func (q *Quota) Reset(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hosts.isLimited() {
		q.hosts.done.Set(host, 0)
	}
}

// LimitReached returns an error that wraps ErrLimit and names the limit.
func LimitReached(limit string) error { return fmt.Errorf("%w: %s", ErrLimit, limit) }
