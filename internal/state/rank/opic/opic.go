// Package opic implements the order by cash of on-line page importance computation (OPIC).
//
// Each URL has cash, and URLs with most cash go first. A page that is fetched distributes its cash equally to the URLs
// that it links to. So importance is computed during the crawl, at the cost of one addition per link and without
// iteration.
//
// Source: Abiteboul, Preda and Cobena, "Adaptive on-line page importance computation", 2003. The package differs:
//
//   - In the paper the graph is known, and each of its n pages begins with 1/n. Here URLs are discovered all the time,
//     and each adds a cash of 1.
//   - The paper fetches pages again and again, and measures importance by all cash that a page ever received (its
//     history). Here the current cash orders URLs that were never fetched.
//   - The paper's virtual page, which all others link to and which links to all, is omitted. Its share would be the
//     same for all.
//   - Cash that a fetched page receives stays there.
package opic

import "kumo/internal/state/rank"

// Order is the order by cash. The sums are the cash in addition to the initial 1 of a URL, so -1 means none is left.
type Order struct{ rank.Summed }

var _ rank.Order = (*Order)(nil)

// New returns the order of an empty graph.
func New() *Order { return &Order{} }

// Fetched distributes a page's cash to its links.
func (o *Order) Fetched(p *rank.Page) {
	share := o.Share(p.ID, p.Out)
	*o.At(p.ID) = -1
	for _, to := range p.Links {
		*o.At(to) += share
	}
}

// Share returns the part of a page's cash that each of its links gets.
func (o *Order) Share(page rank.ID, out int) float32 {
	return (1 + *o.At(page)) / float32(max(out, 1))
}

// minImportance keeps the importance of URLs without cash above 0.
const minImportance = 1.0 / 1024

// Importance returns a URL's cash.
func (o *Order) Importance(u rank.ID, _ int32) float64 {
	return max(minImportance, 1+float64(*o.At(u)))
}
