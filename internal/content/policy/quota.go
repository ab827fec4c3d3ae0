package policy

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"kumo/internal/base/bounded"
)

// ErrLimit is why a crawl stopped that reached a limit; URLs may still wait.
var ErrLimit = errors.New("limit reached")

// A Quota counts pages against the limits, those under way included, so that no limit is overshot.
type Quota struct {
	mu       sync.Mutex // guards all
	pages    int64      // 0: without limit
	done     int64
	used     int64 // done or under way
	hosts    tally
	domains  tally
	bytes    byteTally
	complete bool // the tallies have the pages of earlier runs
}

type byteTally struct {
	limit     int64 // 0: without limit
	overrides *Overrides
	received  map[string]int64 // nil without a limit
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

// A tally counts pages by a name.
type tally struct {
	limit     int64            // 0: without limit
	overrides *Overrides       // of hosts that have others
	done      *bounded.Counts  // nil without a limit
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

// full reports whether a name has reached its limit; may, whether it has once all pages in flight are answered.
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

// begin counts pages under way.
func (t *tally) begin(name string, n int64) {
	if !t.isLimited() || name == "" {
		return
	}
	if t.inFlight[name] += n; t.inFlight[name] == 0 {
		delete(t.inFlight, name)
	}
}

// Limits bound pages. 0: without limit.
type Limits struct {
	Pages     int64
	PerHost   int64
	PerDomain int64 // of a registered domain
	Bytes     int64 // of a host, over the wire

	Overrides *Overrides // of hosts that have a limit in place of PerHost or Bytes
}

// NewQuota makes one for a crawl that has done so many pages.
func NewQuota(l Limits, done int64) *Quota {
	return &Quota{pages: l.Pages, done: done, used: done, hosts: newTally(l.PerHost, l.Overrides),
		domains: newTally(l.PerDomain, nil), bytes: newByteTally(l.Bytes, l.Overrides)}
}

// CountsPages reports whether pages are counted by host. If not, no host can have a limit any more.
func (q *Quota) CountsPages() bool { return q.hosts.isLimited() }

// HostLimit is how many pages a host may give; 0: without limit.
func (q *Quota) HostLimit(host string) int64 { return q.hosts.limitOf(host) }

// PageLimit is how many the crawl may do in all; 0: without limit.
func (q *Quota) PageLimit() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pages
}

// SetPageLimit sets how many pages the crawl may do in all.
func (q *Quota) SetPageLimit(pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.pages = pages
}

// AddEarlier adds pages that a host has given in earlier runs, or to other nodes.
func (q *Quota) AddEarlier(host string, pages int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hosts.add(host, pages)
}

// AddEarlierOfDomain adds pages that a registered domain has given in earlier runs.
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

// OfHost is how many pages a host has given; false if that is not known.
func (q *Quota) HostPages(host string) (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.complete || !q.hosts.isLimited() {
		return 0, false
	}
	return q.hosts.get(host), true
}

// A Grant is what the limits have to say to one page more.
type Grant uint8

// The answers.
const (
	Granted       Grant = iota
	NotNow              // pages under way may use up what is left, or give it back
	CrawlIsFull         // the crawl has its pages
	HostIsFull          // the host has its pages
	DomainIsFull        // the host's registered domain has
	HostBytesFull       // the host has its bytes
)

// Acquire asks for one page of a host, and of a registered domain; "" is one without limit.
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
	case hostMay, domainMay, q.pages > 0 && q.used >= q.pages:
		return NotNow
	}
	q.used++
	q.hosts.begin(host, 1)
	q.domains.begin(domain, 1)
	return Granted
}

// CountsBytes reports whether bytes are counted by host. If not, no host can have a limit of them any more.
func (q *Quota) CountsBytes() bool { return q.bytes.received != nil }

// AddBytes adds bytes that a host has sent, in this run or an earlier one.
func (q *Quota) AddBytes(host string, n int64) {
	if q.bytes.received == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes.add(host, n)
}

// Finish says what became of a page that Take granted, and reports whether the crawl has its pages now.
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

// Reset forgets the pages of a host.
func (q *Quota) Reset(host string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hosts.isLimited() {
		q.hosts.done.Set(host, 0)
	}
}

// LimitReached is an error that is ErrLimit and names the limit.
func LimitReached(limit string) error { return fmt.Errorf("%w: %s", ErrLimit, limit) }
