// Package opic has URLs go first that have been given most cash: the on-line page importance computation of Abiteboul,
// Preda and Cobena ("Adaptive on-line page importance computation", 2003).
//
// Each URL has cash. A page that is fetched gives all that it has to the URLs that it links to, in equal parts. So
// importance flows while the crawl goes on, at the cost of an addition a link, and there is nothing to iterate.
//
// What differs: the paper's graph is known, and each of its n pages begins with 1/n; here URLs become known all the
// time, and each brings 1 with it. The paper measures importance by all cash that ever came to a page (its history), as
// it fetches pages again and again; what orders URLs that were never fetched is the cash that they have. The page to
// which all others link, and that links to all, is not there: its part would be the same for all. What comes to a page
// that was fetched stays there.
package opic

import "kumo/internal/state/rank"

// Order is the order by cash. It keeps 4 bytes a URL.
type Order struct {
	gained rank.Vector[float32] // cash beyond the 1 that a URL brings: -1 has nothing
}

var _ rank.Order = (*Order)(nil)

// New returns the order of an empty graph.
func New() *Order { return &Order{} }

// Grow gives new URLs their cash.
func (o *Order) Grow(n int) { o.gained.Grow(n) }

// Fetched takes a page's cash and shares it out.
func (o *Order) Fetched(p *rank.Page) {
	share := o.Share(p.ID, p.Out)
	*o.gained.At(p.ID) = -1
	for _, to := range p.Links {
		*o.gained.At(to) += share
	}
}

// Share is what each of a page's links gets of its cash.
func (o *Order) Share(page rank.ID, out int) float32 {
	return (1 + *o.gained.At(page)) / float32(max(out, 1))
}

// Give gives a URL cash.
func (o *Order) Give(to rank.ID, worth float32) { *o.gained.At(to) += worth }

// Worth is what a URL has beyond 1; less than 0 if it has given that away.
func (o *Order) Worth(u rank.ID) float32 { return *o.gained.At(u) }

// Unit is 1.
func (o *Order) Unit() float32 { return 1 }

// least keeps what has given all its cash away above 0.
const least = 1.0 / 1024

// Importance is a URL's cash.
func (o *Order) Importance(u rank.ID, _ int32) float64 { return max(least, 1+float64(*o.gained.At(u))) }
