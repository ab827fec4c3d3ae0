package experiments

import (
	"context"

	"kumo/internal/lab/sim/queue"
	"kumo/internal/state/rank"
)

// A rankCrawl fetches a graph's pages one after another, in the order that an order gives.
type rankCrawl struct {
	g      *Graph
	order  rank.Order
	growth float64 // share by which links grow between two passes

	depth   []int32 // -1: unknown page
	place   []rank.Place
	fetched []bool
	pages   []rank.ID // fetched, in this order
	queue   rankQueue

	found, passed int // links of fetched pages: now, and at the last pass
}

// A rankQueue holds the pending pages. A page that has moved is in it more than once, but is returned only at its
// current place.
type rankQueue interface {
	push(u rank.ID, place rank.Place)
	// pop returns the next page; false if there is none. is reports whether a page is still pending at a place.
	pop(is func(rank.ID, rank.Place) bool) (rank.ID, bool)
}

// minPassLinks is the number of links before the first pass.
const minPassLinks = 1000

func newRankCrawl(g *Graph, order rank.Order, queue rankQueue, growth float64) *rankCrawl {
	n := g.Pages()
	c := &rankCrawl{g: g, order: order, growth: growth, depth: make([]int32, n), place: make([]rank.Place, n),
		fetched: make([]bool, n), queue: queue, passed: minPassLinks}
	for u := range c.depth {
		c.depth[u] = -1
	}
	order.Grow(n)
	return c
}

// run crawls from the seeds until no page is left. It calls fetched after each fetch.
func (c *rankCrawl) run(ctx context.Context, seeds []rank.ID, fetched func(rank.ID)) error {
	for _, u := range seeds {
		c.addPage(u, 0)
	}
	waits := func(u rank.ID, place rank.Place) bool { return !c.fetched[u] && c.place[u] == place }
	for n := 0; ; n++ {
		u, ok := c.queue.pop(waits)
		if !ok {
			return nil
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		c.fetch(u)
		fetched(u)
		if err := c.pass(ctx); err != nil {
			return err
		}
	}
}

func (c *rankCrawl) fetch(u rank.ID) {
	c.fetched[u] = true
	c.pages = append(c.pages, u)
	page := c.g.page(u)
	c.found += page.Out
	c.order.Fetched(&page)
	for _, to := range page.Links {
		if c.depth[to] < 0 {
			c.addPage(to, c.depth[u]+1)
		} else if !c.fetched[to] {
			c.move(to)
		}
	}
}

func (c *rankCrawl) addPage(u rank.ID, depth int32) {
	if c.depth[u] >= 0 {
		return
	}
	c.depth[u] = depth
	c.place[u] = -1
	c.move(u)
}

// move updates a page's position in the queue.
func (c *rankCrawl) move(u rank.ID) {
	if place := rank.PlaceOf(c.order.Importance(u, c.depth[u])); place != c.place[u] {
		c.place[u] = place
		c.queue.push(u, place)
	}
}

// pass makes a pass over the links of all fetched pages when they have grown enough.
func (c *rankCrawl) pass(ctx context.Context) error {
	o, iterative := c.order.(rank.Iterative)
	if !iterative || float64(c.found) < (1+c.growth)*float64(c.passed) {
		return nil
	}
	c.passed = c.found
	if err := passOver(ctx, o, c.pages, c.g.page, nil); err != nil {
		return err
	}
	for u := range c.depth {
		if c.depth[u] >= 0 && !c.fetched[u] {
			c.move(rank.ID(u))
		}
	}
	return nil
}

// passOver makes a pass over the links of pages, which pageOf returns, and over contributions.
func passOver(ctx context.Context, o rank.Iterative, pages []rank.ID, pageOf func(rank.ID) rank.Page,
	gifts []contribution) error {
	o.Begin()
	err := o.Pass(ctx, func(ctx context.Context, page func(*rank.Page), gift func(rank.ID, float32)) error {
		var p rank.Page
		for _, u := range pages {
			p = pageOf(u)
			page(&p)
		}
		for _, x := range gifts {
			gift(x.to, x.worth)
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	o.End()
	return nil
}

// oneQueue has all pages in one queue, ordered by place, then by arrival.
type oneQueue struct {
	places []queue.FIFO[rank.ID]
	least  int
}

func (q *oneQueue) push(u rank.ID, place rank.Place) {
	for len(q.places) <= int(place) {
		q.places = append(q.places, queue.FIFO[rank.ID]{})
	}
	q.places[place].Push(u)
	q.least = min(q.least, int(place))
}

func (q *oneQueue) pop(is func(rank.ID, rank.Place) bool) (rank.ID, bool) {
	for ; q.least < len(q.places); q.least++ {
		f := &q.places[q.least]
		for f.Len() > 0 {
			if u := f.Pop(); is(u, rank.Place(q.least)) {
				return u, true
			}
		}
	}
	return 0, false
}

// politeQueue has a queue per host. A fetch takes one unit of time; a host may be fetched from again after delay more.
// The available host whose first page has the lowest place goes first; of equal hosts, the longest waiting.
type politeQueue struct {
	hostOf []uint32
	delay  int

	hosts   []politeHost
	ready   queue.Heap[readyHost]
	resting queue.FIFO[restingHost] // hosts whose delay has not passed, by time
	now     int
	idle    int // time in which no host was available
	seq     uint32
}

type politeHost struct {
	pages       queue.Heap[waitingPage]
	resting     bool
	queuedPlace rank.Place // place of its valid entry in ready; others are stale
	queued      bool       // it has an entry in ready
}

type waitingPage struct {
	place rank.Place
	seq   uint32
	page  rank.ID
}

func (a waitingPage) Before(b waitingPage) bool {
	return a.place < b.place || a.place == b.place && a.seq < b.seq
}

type readyHost struct {
	place rank.Place
	seq   uint32
	host  uint32
}

func (a readyHost) Before(b readyHost) bool {
	return a.place < b.place || a.place == b.place && a.seq < b.seq
}

type restingHost struct {
	host  uint32
	until int
}

func newPoliteQueue(g *Graph, delay int) *politeQueue {
	return &politeQueue{hostOf: g.hosts, delay: delay, hosts: make([]politeHost, g.count)}
}

func (q *politeQueue) push(u rank.ID, place rank.Place) {
	host := q.hostOf[u]
	h := &q.hosts[host]
	q.seq++
	h.pages.Push(waitingPage{place, q.seq, u})
	if !h.resting && (!h.queued || place < h.queuedPlace) {
		q.enqueue(host, place)
	}
}

func (q *politeQueue) enqueue(host uint32, place rank.Place) {
	h := &q.hosts[host]
	h.queued, h.queuedPlace = true, place
	q.seq++
	q.ready.Push(readyHost{place, q.seq, host})
}

func (q *politeQueue) pop(is func(rank.ID, rank.Place) bool) (rank.ID, bool) {
	for {
		for q.resting.Len() > 0 && q.resting.First().until <= q.now {
			host := q.resting.Pop().host
			q.hosts[host].resting = false
			q.enqueueFirst(host, is)
		}
		if len(q.ready) == 0 {
			if q.resting.Len() == 0 {
				return 0, false
			}
			q.idle += q.resting.First().until - q.now
			q.now = q.resting.First().until
			continue
		}
		d := q.ready.Pop()
		h := &q.hosts[d.host]
		if !h.queued || h.queuedPlace != d.place {
			continue
		}
		h.queued = false
		if !q.dropStale(h, is) {
			continue
		}
		if first := h.pages[0].place; first > d.place {
			q.enqueue(d.host, first)
			continue
		}
		u := h.pages.Pop().page
		h.resting = true
		q.now++
		q.resting.Push(restingHost{d.host, q.now + q.delay})
		return u, true
	}
}

// dropStale removes stale entries from the front of a host's queue; false if the queue becomes empty.
func (q *politeQueue) dropStale(h *politeHost, is func(rank.ID, rank.Place) bool) bool {
	for len(h.pages) > 0 && !is(h.pages[0].page, h.pages[0].place) {
		h.pages.Pop()
	}
	return len(h.pages) > 0
}

func (q *politeQueue) enqueueFirst(host uint32, is func(rank.ID, rank.Place) bool) {
	if h := &q.hosts[host]; q.dropStale(h, is) {
		q.enqueue(host, h.pages[0].place)
	}
}
