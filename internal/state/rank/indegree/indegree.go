// Package indegree implements the order by backlinks: URLs that most fetched pages link to go first.
//
// Source: Cho, Garcia-Molina and Page, "Efficient crawling through URL ordering", 1998.
package indegree

import "kumo/internal/state/rank"

// Order is the order by in-degree. It keeps 4 bytes a URL.
type Order struct{ links rank.Vector[float32] }

var _ rank.Order = (*Order)(nil)

// New returns the order of an empty graph.
func New() *Order { return &Order{} }

// Grow makes room.
func (o *Order) Grow(n int) { o.links.Grow(n) }

// Fetched counts a page's links.
func (o *Order) Fetched(p *rank.Page) {
	for _, to := range p.Links {
		*o.links.At(to)++
	}
}

// Share is 1: a link is a link.
func (o *Order) Share(rank.ID, int) float32 { return 1 }

// Give counts links from elsewhere.
func (o *Order) Give(to rank.ID, worth float32) { *o.links.At(to) += worth }

// Worth is how many links there are to a URL.
func (o *Order) Worth(u rank.ID) float32 { return *o.links.At(u) }

// Unit is 1.
func (o *Order) Unit() float32 { return 1 }

// Importance is one more than there are links to a URL.
func (o *Order) Importance(u rank.ID, _ int32) float64 { return 1 + float64(*o.links.At(u)) }
