package opic_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/opic"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return opic.New() }) }

// TestCash: a page gives away all of its cash, including the share of links to other nodes.
func TestCash(t *testing.T) {
	o := opic.New()
	o.Grow(4)
	o.Fetched(&rank.Page{ID: 0, Links: []rank.ID{1, 2}, Out: 4}) // a quarter each
	o.Fetched(&rank.Page{ID: 1, Links: []rank.ID{2, 3}, Out: 2}) // 1.25 halved
	for u, want := range []float64{1.0 / 1024, 1.0 / 1024, 1.875, 1.625} {
		if got := o.Importance(rank.ID(u), 0); got != want {
			t.Errorf("URL %d: %v, want %v", u, got, want)
		}
	}
}
