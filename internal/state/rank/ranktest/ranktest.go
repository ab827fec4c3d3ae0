// Package ranktest implements the conformance tests of crawl orders, and generates graphs for them.
package ranktest

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/state/rank"
)

// Pages returns a graph of n URLs. Most of them were fetched. Most links lead to few URLs; some pages have no links,
// and some link to themselves. The same seed gives the same graph.
func Pages(seed uint64, n, meanLinks int) []rank.Page {
	dice := rand.New(rand.NewPCG(seed, 7))
	pages := make([]rank.Page, 0, n)
	for id := range n {
		if dice.IntN(10) == 0 {
			continue // pending
		}
		p := rank.Page{ID: rank.ID(id)}
		for range dice.IntN(2*meanLinks + 1) {
			x := dice.Float64()
			p.Links = append(p.Links, rank.ID(float64(n)*x*x*x))
		}
		slices.Sort(p.Links)
		p.Links = slices.Compact(p.Links)
		p.Out = len(p.Links)
		pages = append(pages, p)
	}
	dice.Shuffle(len(pages), func(i, j int) { pages[i], pages[j] = pages[j], pages[i] })
	return pages
}

// ScanOf returns a scan of pages.
func ScanOf(pages []rank.Page) rank.Scan {
	return func(_ context.Context, page func(*rank.Page), _ func(rank.ID, float32)) error {
		for i := range pages {
			page(&pages[i])
		}
		return nil
	}
}

// Run tests the contract of orders.
func Run(t *testing.T, newOrder func() rank.Order) {
	t.Run("importance is above 0 and finite", func(t *testing.T) { numbers(t, newOrder()) })
	t.Run("the same graph yields the same importance", func(t *testing.T) { same(t, newOrder(), newOrder()) })
	t.Run("Share matches Fetched", func(t *testing.T) { share(t, newOrder(), newOrder()) })
	t.Run("AddExternal can be reverted", func(t *testing.T) { testRetraction(t, newOrder()) })
	t.Run("Worth transfers importance to another order", func(t *testing.T) { worth(t, newOrder(), newOrder()) })
}

const urls = 3000

func fill(o rank.Order, pages []rank.Page) {
	o.Grow(urls)
	for i := range pages {
		o.Fetched(&pages[i])
	}
}

func numbers(t *testing.T, o rank.Order) {
	fill(o, Pages(1, urls, 10))
	o.Grow(urls + 10)
	o.Fetched(&rank.Page{ID: urls + 1})
	for u := range rank.ID(urls + 10) {
		for _, depth := range []int32{0, 1, math.MaxInt32} {
			if x := o.Importance(u, depth); !(x > 0) || math.IsInf(x, 1) || rank.PlaceOf(x) < 0 {
				t.Fatalf("URL %d at depth %d: %v, place %d", u, depth, x, rank.PlaceOf(x))
			}
		}
		if s := o.Share(u, 0); s < 0 || math.IsInf(float64(s), 1) {
			t.Fatalf("URL %d: share %v", u, s)
		}
	}
}

func same(t *testing.T, a, b rank.Order) {
	fill(a, Pages(2, urls, 5))
	fill(b, Pages(2, urls, 5))
	for u := range rank.ID(urls) {
		if x, y := a.Importance(u, 3), b.Importance(u, 3); x != y {
			t.Fatalf("URL %d: %v, then %v", u, x, y)
		}
	}
}

// share checks that an order computes the same importance from external worth as another order from the links
// themselves.
func share(t *testing.T, finder, other rank.Order) {
	finder.Grow(urls)
	other.Grow(urls)
	pages := Pages(3, urls, 5)
	linked := map[rank.ID]bool{}
	for i := range pages {
		p := &pages[i]
		s := finder.Share(p.ID, p.Out)
		finder.Fetched(p)
		for _, to := range p.Links {
			other.AddExternal(to, s)
			linked[to] = true
		}
	}
	for i := range pages {
		delete(linked, pages[i].ID) // the other order does not know that it has used it up
	}
	if len(linked) < 10 {
		t.Fatal("the graph has too few pending URLs")
	}
	for u := range linked {
		if x, y := finder.Importance(u, 1), other.Importance(u, 1); math.Abs(x-y) > 1e-5*x {
			t.Errorf("URL %d: %v with links, %v with external worth", u, x, y)
		}
	}
}

// testRetraction checks that worth added and subtracted again changes nothing, and that a unit raises importance by
// one.
func testRetraction(t *testing.T, o rank.Order) {
	fill(o, Pages(5, urls, 5))
	for u := range rank.ID(urls) {
		before, far := o.Importance(u, 1), o.Unit()*300
		o.AddExternal(u, far)
		if x := o.Importance(u, 1); x != before && math.Abs(x-before-300) > 1e-3 && before > 0.01 {
			t.Fatalf("URL %d: %v, then %v with 300 more units", u, before, x)
		}
		o.AddExternal(u, -far)
		if x := o.Importance(u, 1); math.Abs(x-before) > 1e-4 {
			t.Fatalf("URL %d: %v, then %v after subtraction", u, before, x)
		}
	}
}

func worth(t *testing.T, before, after rank.Order) {
	fill(before, Pages(4, urls, 5))
	after.Grow(urls)
	for u := range rank.ID(urls) {
		after.AddExternal(u, before.Worth(u))
		if x, y := before.Importance(u, 1), after.Importance(u, 1); math.Abs(x-y) > 1e-6*x {
			t.Fatalf("URL %d: %v before the move, %v after", u, x, y)
		}
	}
}
