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
// which outlive the process.
//
// docs/decisions/rank.md compares the orders and their costs.
package rank

import (
	"context"
	"math"
)

// An ID is the number of a URL: from 0, in the order in which URLs became known. There are no gaps.
type ID uint32

// A Page is one that was fetched, as orders see it.
type Page struct {
	ID    ID
	Links []ID // the URLs that it links to, each once, ascending
	Out   int  // how many it links to in all, with those that other nodes have: len(Links) or more
}

// An Order says how important URLs are. All numbers are known to it before they are used: [Order.Grow] is called first.
// Its methods are called by one goroutine at a time, but for what [Iterative] says.
type Order interface {
	// Grow tells that all numbers below n are of URLs.
	Grow(n int)
	// Fetched takes a page in that was fetched: each once.
	Fetched(p *Page)
	// Share is what a link on a page, which has out of them in all, is worth to the URL that it names. It is asked
	// before Fetched is told of the page, for links that another node takes in by Give.
	Share(page ID, out int) float32
	// AddExternal takes in links from elsewhere to a URL: the sum of what they are worth. It may be below 0: what
	// was told before is worth less by now, or a URL comes from a node that has used up more than links gave it.
	AddExternal(to ID, worth float32)
	// Worth is what all links to a URL are worth, as far as pages have not used it up: what its next node is to be
	// given when its host moves there.
	Worth(u ID) float32
	// Unit is how much more links to a URL are worth if its importance is 1 more.
	Unit() float32
	// Importance is that of a URL at a depth in links from a seed: above 0 and finite.
	Importance(u ID, depth int32) float64
}

// A Scan calls functions for all pages that were fetched, and all that came from elsewhere, in the order in which they
// came. Pages hold until the functions return. It ends early with an error of its own, or of its context.
type Scan func(ctx context.Context, page func(*Page), gift func(to ID, worth float32)) error

// An Iterative order computes importance from all links together, again as they grow, and estimates it in between. A
// pass is Begin, one or more of Pass, which may run beside other methods in a goroutine of its own, and End.
type Iterative interface {
	Order
	// Begin begins a pass over the links of all URLs there are.
	Begin()
	// Pass takes in links. What was not known at Begin may be among them.
	Pass(ctx context.Context, links Scan) error
	// End ends the pass: importance is what it has found.
	End()
	// PreviousImportance is the importance that a URL had before End. It may be asked until the next Begin.
	PreviousImportance(u ID) float64
}

// A Place is where a URL belongs among those that wait: the least goes first. None is below 0.
type Place int32

// Steps is by how many places what is twice as important goes before.
const Steps = 8

const middle Place = 40 * Steps

// PlaceOf is the place of an importance above 0: the same on all machines.
func PlaceOf(importance float64) Place {
	mantissa, exponent := math.Frexp(importance) // from a half to 1
	eighth := 0
	for eighth < Steps-1 && mantissa >= eighths[eighth] {
		eighth++
	}
	return max(0, middle-Place((exponent-1)*Steps+eighth))
}

// eighths are the powers of 2 with exponents -7/8, -6/8 to -1/8.
var eighths = [Steps - 1]float64{0.5452538663326288, 0.5946035575013605, 0.6484197773255048, 0.7071067811865476,
	0.7711054127039704, 0.8408964152537145, 0.9170040432046712}

// A Lift is by how many places something beside its order makes a URL go before others; below 0, behind them.
type Lift int16

const mostLift = 20 * Steps

// LiftOf is the lift of a factor above 0 by which importance is multiplied.
func LiftOf(factor float64) Lift {
	l := math.Round(Steps * math.Log2(factor))
	return Lift(max(-mostLift, min(mostLift, l)))
}

// With is a place with a lift.
func (p Place) With(l Lift) Place { return max(0, p-Place(l)) }

// Factor is by what a lift multiplies importance.
func (l Lift) Factor() float64 { return math.Exp2(float64(l) / Steps) }

// OfSitemap is the lift of the priority that a sitemap gives a URL, from 0 to 1; 0.5 is what sites mean by saying
// nothing. It is a factor of 2 at the most: a site speaks of its own pages only, and it may say 1 of all of them.
func OfSitemap(priority float64) Lift {
	if !(priority >= 0 && priority <= 1) {
		return 0
	}
	return Lift(math.Round(Steps * (2*priority - 1)))
}
