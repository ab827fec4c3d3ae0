// Package indegree implements the order by backlinks: URLs that most fetched pages link to go first.
//
// Source: Cho, Garcia-Molina and Page, "Efficient crawling through URL ordering", 1998.
package indegree

import "kumo/internal/state/rank"

// Order is the order by in-degree: the sums count links.
type Order struct{ rank.Summed }

var _ rank.Order = (*Order)(nil)

// New returns the order of an empty graph.
func New() *Order { return &Order{} }

// Fetched counts a page's links.
func (o *Order) Fetched(p *rank.Page) {
	for _, to := range p.Links {
		*o.At(to)++
	}
}

// Share returns 1, since all links have the same weight.
func (o *Order) Share(rank.ID, int) float32 { return 1 }

// Importance returns the number of links to a URL plus one.
func (o *Order) Importance(u rank.ID, _ int32) float64 { return 1 + float64(*o.At(u)) }
