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
	taken    int64 // done or under way
	hosts    tally
	domains  tally
	bytes    byteTally
	complete bool // the tallies have the pages of earlier runs
}

type byteTally struct {
	most int64 // 0: without limit
	own  *Overrides
	got  map[string]int64 // nil without a limit
}

func newByteTally(most int64, own *Overrides) byteTally {
	if most <= 0 && !own.BoundBytes() {
		return byteTally{}
	}
	return byteTally{most, own, map[string]int64{}}
}

func (t *byteTally) add(host string, n int64) {
	if t.got == nil {
		return
	}
	if _, known := t.got[host]; !known {
		host = strings.Clone(host)
	}
	t.got[host] += n
}

func (t *byteTally) full(host string) bool {
	if t.got == nil {
		return false
	}
	most := t.most
	if own := t.own.OfHost(host).BytesPerHost; own != nil {
		most = *own
	}
	return most > 0 && t.got[host] >= most
}

// A tally counts pages by a name.
type tally struct {
	most     int64            // 0: without limit
	own      *Overrides       // of hosts that have others
	done     *bounded.Counts  // nil without a limit
	underWay map[string]int64 // by name
}

func newTally(most int64, own *Overrides) tally {
	if most <= 0 && !own.BoundPages() {
		return tally{}
	}
	return tally{most: most, own: own, done: bounded.NewCounts(), underWay: map[string]int64{}}
}

// counts reports whether there are limits.
func (t *tally) counts() bool { return t.done != nil }

func (t *tally) mostOf(name string) int64 {
	if own := t.own.OfHost(name).PagesPerHost; own != nil {
		return *own
	}
	return t.most
}

func (t *tally) get(name string) int64 {
	if !t.counts() || name == "" {
		return 0
	}
	return int64(t.done.Get(name))
}

func (t *tally) add(name string, pages int64) {
	if t.counts() && name != "" {
		t.done.Set(name, uint32(min(t.get(name)+pages, math.MaxUint32)))
	}
}

// full reports whether a name has reached its limit; may, whether it has once all pages in flight are answered.
func (t *tally) full(name string) (full, may bool) {
	if !t.counts() || name == "" {
		return false, false
	}
	most := t.mostOf(name)
	if most == 0 {
		return false, false
	}
	n := t.get(name)
	return n >= most, n+t.underWay[name] >= most
}

// begin counts pages under way.
func (t *tally) begin(name string, n int64) {
	if !t.counts() || name == "" {
		return
	}
	if t.underWay[name] += n; t.underWay[name] == 0 {
		delete(t.underWay, name)
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
	return &Quota{pages: l.Pages, done: done, taken: done, hosts: newTally(l.PerHost, l.Overrides),
		domains: newTally(l.PerDomain, nil), bytes: newByteTally(l.Bytes, l.Overrides)}
}

// Counts reports whether pages are counted by host. If not, no host can have a limit any more.
func (q *Quota) Counts() bool { return q.hosts.counts() }

// Most is how many pages a host may give; 0: without limit.
func (q *Quota) Most(host string) int64 { return q.hosts.mostOf(host) }

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
func (q *Quota) OfHost(host string) (int64, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.complete || !q.hosts.counts() {
		return 0, false
	}
	return q.hosts.get(host), true
}

// A Grant is what the limits have to say to one page more.
type Grant uint8

// The answers.
const (
	Granted      Grant = iota
	NotNow             // pages under way may use up what is left, or give it back
	CrawlIsFull        // the crawl has its pages
	HostIsFull         // the host has its pages
	DomainIsFull       // the host's registered domain has
	HostHasBytes       // the host has its bytes
)

// Take asks for one page of a host, and of a registered domain; "" is one without limit.
func (q *Quota) Take(host, domain string) Grant {
	q.mu.Lock()
	defer q.mu.Unlock()
	hostFull, hostMay := q.hosts.full(host)
	domainFull, domainMay := q.domains.full(domain)
	switch {
	case hostFull:
		return HostIsFull
	case q.bytes.full(host):
		return HostHasBytes
	case domainFull:
		return DomainIsFull
	case q.pages > 0 && q.done >= q.pages:
		return CrawlIsFull
	case hostMay, domainMay, q.pages > 0 && q.taken >= q.pages:
		return NotNow
	}
	q.taken++
	q.hosts.begin(host, 1)
	q.domains.begin(domain, 1)
	return Granted
}

// CountsBytes reports whether bytes are counted by host. If not, no host can have a limit of them any more.
func (q *Quota) CountsBytes() bool { return q.bytes.got != nil }

// AddBytes adds bytes that a host has sent, in this run or an earlier one.
func (q *Quota) AddBytes(host string, n int64) {
	if q.bytes.got == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes.add(host, n)
}

// Settle says what became of a page that Take granted, and reports whether the crawl has its pages now.
func (q *Quota) Settle(host, domain string, answered bool) (full bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hosts.begin(host, -1)
	q.domains.begin(domain, -1)
	if !answered {
		q.taken--
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
	if q.hosts.counts() {
		q.hosts.done.Set(host, 0)
	}
}

// LimitReached is an error that is ErrLimit and names the limit.
func LimitReached(limit string) error { return fmt.Errorf("%w: %s", ErrLimit, limit) }
