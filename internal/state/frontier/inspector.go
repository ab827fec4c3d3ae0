package frontier

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"
)

// An Inspector reads the states of hosts and their queues without changing them. It holds the frontier's lock only for
// short times.
type Inspector struct {
	mu         *sync.Mutex // the frontier's lock
	now        func() time.Time
	polite     *politeness
	bench      *workbench
	ranking    *ranking
	suppressed *suppression
	pages      *pager // nil, with those below, if all is in memory
	cold       *coldHosts
	buckets    *buckets
	reader     *bucketReader
}

// A HostInfo is the state of a host.
type HostInfo struct {
	Key            string
	Next           time.Time // no visit begins earlier
	Why            Why
	Pending        int // number of items
	Active         int // visits under way
	Delay          time.Duration
	RequestedDelay time.Duration // the part of Delay that robots.txt requests
	Failures       int           // in a row
	Suspect        bool          // failed or was slow recently
	MaxWait        time.Duration // upper limit of its wait, whatever it requests
	Slices         int           // number of slices of its host, if this is one
	Parked         bool          // its items wait for a robots.txt
	Away           bool          // no item of its own was added since it was created or removed
}

// Why is the reason why a host waits.
type Why string

// Reasons why a host waits.
const (
	WhyNothing    Why = ""           // it has no items
	WhyWorker     Why = "a place"    // it is due
	WhyActive     Why = "its answer" // a visit is under way
	WhyParked     Why = "robots.txt"
	WhyDelay      Why = "delay"
	WhyCrawlDelay Why = "Crawl-delay" // of robots.txt, longer than the crawl's own delay
	WhyBackoff    Why = "back-off"    // it failed
	WhyRetryAfter Why = "its wish"    // Retry-After, or status 429 or 503 without one
	WhyTurn       Why = "its turn at a shared address"
)

// Infos returns the states of hosts. Unknown hosts have no key.
func (i *Inspector) Infos(keys []string) []HostInfo {
	const step = 128 // in one hold of the lock
	all := make([]HostInfo, 0, len(keys))
	for some := range slices.Chunk(keys, step) {
		i.mu.Lock()
		for _, key := range some {
			info, _ := i.host(key)
			all = append(all, info)
		}
		i.mu.Unlock()
	}
	return all
}

// NextHost returns the host in memory without a request under way that may be visited first, or false if there is none.
func (i *Inspector) NextHost() (HostInfo, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	h := i.bench.schedule.firstWaiting()
	if h == nil {
		return HostInfo{}, false
	}
	return i.hotInfo(h), true
}

// find returns a host in memory, or the number of its record, or neither.
func (i *Inspector) find(key string) (*host, uint32) {
	h := i.bench.hosts[key]
	if h != nil || i.cold == nil {
		return h, 0
	}
	return nil, i.cold.find(key)
}

func (i *Inspector) has(key string) bool {
	h, id := i.find(key)
	return h != nil || id != 0
}

func (i *Inspector) host(key string) (HostInfo, bool) {
	switch h, id := i.find(key); {
	case h != nil:
		return i.hotInfo(h), true
	case id != 0:
		return i.coldInfo(key, id), true
	}
	return HostInfo{}, false
}

// hotInfo returns the state of a host in memory.
func (i *Inspector) hotInfo(h *host) HostInfo {
	c := &h.clock
	info := HostInfo{Key: h.key, Next: c.next, Pending: int(h.queue.count()), Active: h.visits.n,
		Delay: i.polite.delayOf(c), RequestedDelay: c.requestedDelay, Failures: c.failures.n, Suspect: c.suspect,
		Parked: len(h.parked) > 0, Away: h.away}
	i.explain(&info, h.hasTurn(), c.backingOff, c.throttles.n)
	return info
}

// coldInfo returns the state of a cold host. The key may be unknown (""), and then its own delay is, too.
func (i *Inspector) coldInfo(key string, id uint32) HostInfo {
	r := i.cold.table.at(id)
	s := unpack(r.state)
	info := HostInfo{Key: key, Next: i.cold.time(s.next), Pending: int(r.count), Failures: s.failures,
		Suspect: r.is(isSuspect), Parked: r.is(isParked), RequestedDelay: r.requestedDelay(), Away: r.away()}
	info.Delay = max(i.polite.baseDelayOf(key), info.RequestedDelay)
	i.explain(&info, r.is(hasTurn), r.is(isBacking), s.throttles)
	return info
}

// explain sets the reason why a host waits.
func (i *Inspector) explain(info *HostInfo, turn, backing bool, throttles int) {
	info.MaxWait, info.Slices = i.polite.maxWait, i.polite.slices
	switch {
	case info.Active > 0:
		info.Why = WhyActive
	case info.Pending == 0:
		info.Why = WhyNothing
	case info.Parked:
		info.Why = WhyParked
	case !info.Next.After(i.now()):
		info.Why = WhyWorker
	case turn:
		info.Why = WhyTurn
	case backing && throttles > 0:
		info.Why = WhyRetryAfter
	case backing:
		info.Why = WhyBackoff
	case info.RequestedDelay > 0 && info.RequestedDelay == info.Delay:
		info.Why = WhyCrawlDelay
	default:
		info.Why = WhyDelay
	}
}

// An Order sorts hosts.
type Order struct {
	compare func(a, b *HostInfo) int
	most    bool // by the number of items alone, largest first
}

// ByPending orders hosts by the number of their items, largest first.
var ByPending = Order{compare: func(a, b *HostInfo) int { return cmp.Compare(b.Pending, a.Pending) }, most: true}

// maxExamined is the number of items of a host that Queue and Find examine.
const maxExamined = 10_000

// Queue returns the first n items of a host in their order, 10,000 at most.
func (i *Inspector) Queue(key string, n int) ([]Item, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var items []Item
	err := i.view(key, func(q *queueView) error {
		for len(items) < min(n, maxExamined) {
			it, err := q.next()
			if it == nil || err != nil {
				return err
			}
			items = append(items, *it)
		}
		return nil
	})
	return items, err
}

// A FoundItem is an item with its position.
type FoundItem struct {
	Item
	Position int  // in its host's queue, from 1
	UnderWay bool // already handed out
}

// Find searches for a URL among the visits under way at a host and its first 10,000 items. It returns nil if the URL is
// not there.
func (i *Inspector) Find(key, url string) (*FoundItem, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if h := i.bench.hosts[key]; h != nil {
		for _, it := range h.visits.items {
			if it.URL == url && it.Robots == "" {
				return &FoundItem{Item: *it, UnderWay: true}, nil
			}
		}
	}
	var found *FoundItem
	place := 0
	err := i.view(key, func(q *queueView) error {
		for found == nil && place < maxExamined {
			it, err := q.next()
			if it == nil || err != nil {
				return err
			}
			if place++; it.URL == url && it.Robots == "" {
				found = &FoundItem{Item: *it, Position: place}
			}
		}
		return nil
	})
	return found, err
}

// view calls do with a view of a host's queue, and again if frames were missing: see pager. The host stays in place,
// and its segments are pinned.
func (i *Inspector) view(key string, do func(*queueView) error) error {
	i.pages.pin()
	defer i.pages.unpin()
	var q *queueView
	var h *host // if it is in memory
	err := i.pages.run(func() error {
		if q == nil {
			begun, err := i.openView(key)
			if err != nil {
				return err
			}
			if q, h = begun, i.bench.hosts[key]; h != nil {
				i.bench.hold(h)
			}
		}
		return do(q)
	})
	if h != nil {
		i.bench.release(h)
	}
	return err
}

// openView returns a view of a host's items in memory, or in its bucket, with their current ranks.
func (i *Inspector) openView(key string) (*queueView, error) {
	h, id := i.find(key)
	if h != nil {
		i.bench.saver.saveHost(h)
		i.ranking.refresh(&h.queue)
		q := i.viewOf(key)
		q.items, q.links = slices.Clone(h.queue.front), slices.Clone(h.queue.links)
		return q, nil
	}
	if id == 0 {
		return i.viewOf(key), nil
	}
	r := i.cold.table.at(id)
	b := i.buckets.byID[r.bucket]
	if b == nil {
		return i.viewCold(key, r, nil), nil
	}
	s, err := i.reader.find(b, id)
	if err != nil {
		return nil, err
	}
	if i.ranking.ranker != nil && s.generation != i.ranking.generation() {
		i.ranking.rerank(key, s.items, s.deepest)
	}
	return i.viewCold(key, r, s.items), nil
}

func (i *Inspector) viewOf(key string) *queueView {
	return &queueView{host: key, pages: i.pages, suppressed: i.suppressed.view()}
}

// viewCold returns a view of a cold host with the items of its bucket.
func (i *Inspector) viewCold(key string, r *record, items []entry) *queueView {
	q := i.viewOf(key)
	if r.top != 0 {
		q.links = []link{{at: r.top, key: key0}}
	}
	q.addEntries(items)
	return q
}

// A queueView iterates over a copy of a host's queue in order. It reads blocks without changing the queue.
type queueView struct {
	host       string
	items      queue
	links      []link
	pages      *pager
	suppressed suppressedView
}

// addEntries copies entries, because their buffer is reused.
func (q *queueView) addEntries(entries []entry) {
	q.items = slices.Grow(q.items, len(entries))
	for _, e := range entries {
		e.data = bytes.Clone(e.data)
		q.items.push(e)
	}
}

// next returns the next item that is not suppressed, nil after the last.
func (q *queueView) next() (*Item, error) {
	for {
		it, err := q.any()
		if it == nil || err != nil {
			return nil, err
		}
		if it.QueueLast = false; !q.suppressed.drops(it.URL) {
			return it, nil
		}
	}
}

// any returns the next item, including suppressed ones.
func (q *queueView) any() (*Item, error) {
	for len(q.links) > 0 && (len(q.items) == 0 || q.links[0].key.less(q.items[0].key)) {
		if err := q.expand(); err != nil {
			return nil, err
		}
	}
	if len(q.items) == 0 {
		return nil, nil
	}
	e := q.items.pop()
	it, err := e.item(q.host)
	if err != nil {
		return nil, err
	}
	return &it, nil
}

// expand replaces the first link with the contents of its block.
func (q *queueView) expand() error {
	b, err := q.pages.block(q.links[0].at)
	if err != nil {
		return err
	}
	q.links = q.links[1:]
	for _, l := range b.links {
		q.links = insertLink(q.links, l)
	}
	for _, e := range b.items {
		q.items.push(e)
	}
	return nil
}
