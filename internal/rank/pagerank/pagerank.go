// Package pagerank has URLs go first that have the highest PageRank (Page, Brin, Motwani and Winograd, 1999) in the graph
// that the crawl has found so far, as Igloo did (Ye, Yu and Ma, 2002).
//
// With T URLs, of which some were fetched and the others wait, and a jump's weight d
//
//	R(v) = d/T + (1-d) * sum over pages u that link to v of R(u)/out(u)
//
// where out(u) is how many URLs u links to. What waits links to nothing that is known; neither it nor a page without
// links hands its rank on. Others spread that evenly over all URLs: the ranks are then those of the formula above,
// divided by their sum, so the order is the same.
//
// The vector has r(v) = T·R(v) - d, which is 0 of a URL to which nothing links, whatever T is. So it stays what it is as
// the graph grows, and nodes of a cluster, each with a T of its own, can add what others tell them. Importance is T·R/d.
//
// What differs from both papers: a page's links raise what they name at once, by what its rank is just then
// ([Order.Fetched]); a pass over all links replaces these estimates by the formula's next iterate. As the crawl makes a
// pass whenever the links have become more by a share, all passes together cost each link a constant.
//
// Numbers are float32. A rank is right to some 10^-6 of itself where up to 10^6 links name a URL; of one with a
// hundred times as many the least links are lost in its sum.
package pagerank

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"kumo/internal/rank"
)

// Jump is the usual weight of a jump, d.
const Jump = 0.15

// Order is the order by PageRank. It keeps 8 bytes a URL.
type Order struct {
	jump float32

	growing sync.Mutex // guards the length of ranks
	ranks   vector     // passes read it beside who writes
	next    vector     // of the pass; between two, what ranks were before the last
	stale   bool       // next has not been cleared for the pass yet
}

// A vector has float32s, as their bits.
type vector = rank.Vector[uint32]

var _ rank.Iterative = (*Order)(nil)

// New returns the order of an empty graph. jump is d, 0 to 1, both left out; 0 is [Jump].
func New(jump float64) *Order {
	if jump == 0 {
		jump = Jump
	}
	return &Order{jump: float32(jump)}
}

// Grow makes room.
func (o *Order) Grow(n int) {
	o.growing.Lock()
	defer o.growing.Unlock()
	o.ranks.Grow(n)
}

// Fetched adds a page's share to the ranks of what it links to.
func (o *Order) Fetched(p *rank.Page) {
	share := o.Share(p.ID, p.Out)
	for _, to := range p.Links {
		o.Give(to, share)
	}
}

// Share is what a link adds to r of what it names.
func (o *Order) Share(page rank.ID, out int) float32 { return o.share(o.Worth(page), out) }

func (o *Order) share(r float32, out int) float32 {
	return float32((1 - o.jump) * float32((o.jump+r)/float32(max(out, 1))))
}

// Give adds to the rank of a URL.
func (o *Order) Give(to rank.ID, worth float32) {
	at := o.ranks.At(to)
	atomic.StoreUint32(at, sum(*at, worth))
}

// Worth is r.
func (o *Order) Worth(u rank.ID) float32 { return load(&o.ranks, u) }

func load(v *vector, u rank.ID) float32 {
	return math.Float32frombits(atomic.LoadUint32(v.At(u)))
}

// Importance is how many times as high as that of a URL without links to it a URL's rank is.
func (o *Order) Importance(u rank.ID, _ int32) float64 { return o.importance(o.Worth(u)) }

func (o *Order) importance(r float32) float64 { return 1 + float64(r)/float64(o.jump) }

// Begin begins a pass.
func (o *Order) Begin() { o.stale = true }

// Pass adds to the next iterate what links are worth by the ranks of now.
func (o *Order) Pass(ctx context.Context, links rank.Scan) error {
	o.growing.Lock()
	ranks := o.ranks // as long as it is now
	o.growing.Unlock()
	if o.stale {
		o.stale = false
		o.next.Clear()
	}
	o.next.Grow(ranks.Len())
	next := o.next
	return links(ctx, func(p *rank.Page) {
		share := o.share(load(&ranks, p.ID), p.Out)
		for _, to := range p.Links {
			at := next.At(to)
			*at = sum(*at, share)
		}
	}, func(to rank.ID, worth float32) {
		at := next.At(to)
		*at = sum(*at, worth)
	})
}

// sum adds to a number that is there as its bits.
func sum(bits uint32, more float32) uint32 {
	return math.Float32bits(math.Float32frombits(bits) + more)
}

// End makes ranks what the pass has found.
func (o *Order) End() {
	o.growing.Lock()
	defer o.growing.Unlock()
	o.next.Grow(o.ranks.Len())
	o.ranks, o.next = o.next, o.ranks
}

// Before is the importance that a URL had before the last pass ended.
func (o *Order) Before(u rank.ID) float64 {
	if int(u) >= o.next.Len() {
		return 1
	}
	return o.importance(load(&o.next, u))
}

// Bytes is how much memory the order takes.
func (o *Order) Bytes() int64 { return int64(o.ranks.Room()+o.next.Room()) * 4 }
