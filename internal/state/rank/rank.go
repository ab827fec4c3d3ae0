// Package rank defines crawl orders, which decide the priority of pending URLs.
//
// Each order has a package of its own below this one. Users and sites can adjust priorities ([Preferences],
// [OfSitemap]).
//
// An [Order] assigns each URL an importance, a number above 0. By default, an importance of 1 belongs to a URL of which
// nothing but its existence is known. A queue needs an integer, of which the least goes first: a [Place], which is the
// importance's logarithm in eighths of a factor of 2. So places depend neither on each single link nor on the size of
// the crawl, and users' adjustments ([Lift]) can be added to them.
//
// Orders use numbers instead of URLs ([kumo/internal/state/rank/ids] assigns them). They store at most a vector, and
// use no clock and no disk. [kumo/internal/state/rank/ranker] combines an order with the numbers and with the links,
// which are persistent.
//
// docs/decisions/rank.md compares the orders and their costs.
package rank

import (
	"context"
	"math"
)

// An ID is the number of a URL. Numbers start at 0 and have no gaps; they follow the order in which URLs became known.
type ID uint32

// A Page is a fetched page, as orders see it.
type Page struct {
	ID    ID
	Links []ID // URLs that it links to, without duplicates, ascending
	Out   int  // total number of different links, including those that other nodes have; at least len(Links)
}

// An Order computes the importance of URLs. [Order.Grow] must be called before a number is used. An Order is not safe
// for concurrent use, except as [Iterative] describes.
type Order interface {
	// Grow announces that all numbers below n belong to URLs.
	Grow(n int)
	// Fetched adds a fetched page and its links. Each page is added once.
	Fetched(p *Page)
	// Share returns the worth of a link on a page with out links. It is called before Fetched, for links that another
	// node adds with AddExternal.
	Share(page ID, out int) float32
	// AddExternal adds the worth of links from elsewhere to a URL. It may be negative: if links lost worth since the
	// last report, or if a URL comes from a node where it has used up more than its links gave it.
	AddExternal(to ID, worth float32)
	// Worth returns the worth of all links to a URL that pages have not used up. It is sent along when the URL's host
	// moves to another node.
	Worth(u ID) float32
	// Unit returns the worth of links that raises a URL's importance by 1.
	Unit() float32
	// Importance returns the importance of a URL at a depth in links from a seed. It is above 0 and finite.
	Importance(u ID, depth int32) float64
}

// A Scan calls functions for all fetched pages, and for all worth added from elsewhere, in the order of addition. A
// page is valid until the function returns. A Scan stops at its own errors and at those of ctx.
type Scan func(ctx context.Context, page func(*Page), gift func(to ID, worth float32)) error

// An Iterative order recomputes importance from all links as they grow, and estimates it in between. A pass consists of
// Begin, one or more calls of Pass, and End. Pass may run in a separate goroutine, concurrently with other methods.
type Iterative interface {
	Order
	// Begin starts a pass over the links of all current URLs.
	Begin()
	// Pass adds links to the pass. URLs added after Begin may be among them.
	Pass(ctx context.Context, links Scan) error
	// End ends the pass, and replaces the importance by its result.
	End()
	// PreviousImportance returns a URL's importance before End. It may be called until the next Begin.
	PreviousImportance(u ID) float64
}

// A Place is the position of a URL in its queue; the least goes first. Places are not negative.
type Place int32

// Steps is the number of places by which twice the importance is ahead.
const Steps = 8

const middle Place = 40 * Steps

// PlaceOf returns the place of an importance above 0. It is the same on all machines.
func PlaceOf(importance float64) Place {
	mantissa, exponent := math.Frexp(importance) // 0.5 <= mantissa < 1
	eighth := 0
	for eighth < Steps-1 && mantissa >= eighths[eighth] {
		eighth++
	}
	return max(0, middle-Place((exponent-1)*Steps+eighth))
}

// eighths are the powers of 2 with exponents -7/8, -6/8 to -1/8.
var eighths = [Steps - 1]float64{0.5452538663326288, 0.5946035575013605, 0.6484197773255048, 0.7071067811865476,
	0.7711054127039704, 0.8408964152537145, 0.9170040432046712}

// A Lift is a number of places by which a URL goes ahead of others, in addition to its order; negative: behind them.
type Lift int16

const mostLift = 20 * Steps

// LiftOf returns the lift that multiplies importance by a factor above 0.
func LiftOf(factor float64) Lift {
	l := math.Round(Steps * math.Log2(factor))
	return Lift(max(-mostLift, min(mostLift, l)))
}

// With returns the place after a lift.
func (p Place) With(l Lift) Place { return max(0, p-Place(l)) }

// Factor returns the factor by which a lift multiplies importance.
func (l Lift) Factor() float64 { return math.Exp2(float64(l) / Steps) }

// OfSitemap returns the lift for the priority of a URL in a sitemap, from 0 to 1; 0.5 is the default of sitemaps. The
// factor is at most 2: a site only compares its own pages, and may give all of them priority 1.
func OfSitemap(priority float64) Lift {
	if !(priority >= 0 && priority <= 1) {
		return 0
	}
	return Lift(math.Round(Steps * (2*priority - 1)))
}
