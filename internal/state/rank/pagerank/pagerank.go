// Package pagerank implements the order by PageRank in the graph that the crawl has found so far.
//
// Sources: Page, Brin, Motwani and Winograd, 1999; as a crawl order, Igloo (Ye, Yu and Ma, 2002).
//
// With T URLs, fetched or pending, and the weight d of a jump
//
//	R(v) = d/T + (1-d) * sum over pages u that link to v of R(u)/out(u)
//
// where out(u) is the number of URLs that u links to. Pending URLs have no known links. Neither they nor pages without
// links pass their rank on. Other definitions spread this rank evenly over all URLs. Their ranks are those of the
// formula above, divided by their sum, so the order is the same.
//
// The vector is r(v) = T·R(v) - d, which is 0 for a URL without links to it, whatever T is. So it does not change as
// the graph grows. Nodes of a cluster, each with a T of its own, can add values that others report. The importance is
// T·R/d.
//
// Both papers differ in updates. Here the links of a fetched page raise the ranks of their targets at once, by the
// page's current rank ([Order.Fetched]). A pass over all links replaces these estimates by the next iterate of the
// formula. The crawl makes a pass whenever the number of links has grown by a certain share. So all passes together
// cost each link a constant.
//
// A link's contribution to r is a multiple of 2⁻²⁴. So any sum is exact to a millionth of T·R and does not depend on
// the order of its terms.
package pagerank

import (
	"context"

	"kumo/internal/state/rank"
)

// Jump is the usual weight of a jump, d.
const Jump = 0.15

// Order is the order by PageRank. It uses 8 bytes per URL.
type Order struct {
	jump  float64
	ranks *sums // read by passes while other methods add to it
	next  *sums // of the current pass; between passes, the ranks before the last one
	stale bool  // next must be cleared for the pass
}

var _ rank.Iterative = (*Order)(nil)

// New returns the order of an empty graph. jump is d, between 0 and 1; 0 is [Jump].
func New(jump float64) *Order {
	if jump == 0 {
		jump = Jump
	}
	return &Order{jump: jump, ranks: newSums(), next: newSums()}
}

// Grow makes room for all numbers below n.
func (o *Order) Grow(n int) {
	if n > o.ranks.low.Len() {
		o.ranks.grow(n)
	}
}

// Fetched adds a page's share to the ranks of its links.
func (o *Order) Fetched(p *rank.Page) {
	share := o.share(o.rank(p.ID), p.Out)
	if share >= maxAdd {
		o.ranks.addWorthToAll(&o.ranks.low, p.Links, share)
		return
	}
	x := toFixed(share)
	for _, to := range p.Links {
		o.ranks.add(o.ranks.low.At(to), to, x)
	}
}

// Share returns the amount that a link adds to r of its target.
func (o *Order) Share(page rank.ID, out int) float32 { return float32(o.share(o.rank(page), out)) }

func (o *Order) share(r float64, out int) float64 {
	return (1 - o.jump) * (o.jump + r) / float64(max(out, 1))
}

func (o *Order) rank(u rank.ID) float64 { return o.ranks.get(o.ranks.low.At(u), u) }

// AddExternal adds to the rank of a URL.
func (o *Order) AddExternal(to rank.ID, worth float32) {
	o.ranks.addWorth(o.ranks.low.At(to), to, float64(worth))
}

// Worth returns r.
func (o *Order) Worth(u rank.ID) float32 { return float32(o.rank(u)) }

// Unit returns the jump's weight.
func (o *Order) Unit() float32 { return float32(o.jump) }

// Importance returns the rank of a URL relative to that of a URL without links to it.
func (o *Order) Importance(u rank.ID, _ int32) float64 { return 1 + o.rank(u)/o.jump }

// Begin starts a pass.
func (o *Order) Begin() { o.stale = true }

// Pass adds the worth of links, by the current ranks, to the next iterate.
func (o *Order) Pass(ctx context.Context, links rank.Scan) error {
	ranks := o.ranks.vector()
	if o.stale {
		o.stale = false
		o.next.clear()
	}
	o.next.grow(ranks.Len())
	next := o.next.vector()
	return links(ctx, func(p *rank.Page) {
		share := o.share(o.ranks.get(ranks.At(p.ID), p.ID), p.Out)
		if share >= maxAdd {
			o.next.addWorthToAll(&next, p.Links, share)
			return
		}
		x := toFixed(share)
		for _, to := range p.Links {
			if at := next.At(to); *at&^hasHigh+x < hasHigh {
				*at += x // the usual case
			} else {
				o.next.add(at, to, x)
			}
		}
	}, func(to rank.ID, worth float32) { o.next.addWorth(next.At(to), to, float64(worth)) })
}

// End replaces the ranks by the result of the pass.
func (o *Order) End() {
	o.next.grow(o.ranks.low.Len())
	o.ranks, o.next = o.next, o.ranks
}

// PreviousImportance returns the importance that a URL had before the last pass ended.
func (o *Order) PreviousImportance(u rank.ID) float64 {
	if int(u) >= o.next.low.Len() {
		return 1
	}
	return 1 + o.next.get(o.next.low.At(u), u)/o.jump
}

// Bytes returns the memory used by the order.
func (o *Order) Bytes() int64 { return o.ranks.bytes() + o.next.bytes() }
