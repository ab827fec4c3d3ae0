package indegree_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/indegree"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return indegree.New() }) }

func TestLinksAreCounted(t *testing.T) {
	o := indegree.New()
	o.Grow(3)
	o.Fetched(&rank.Page{ID: 0, Links: []rank.ID{1, 2}, Out: 5})
	o.Fetched(&rank.Page{ID: 1, Links: []rank.ID{2}, Out: 1})
	for u, want := range []float64{1, 2, 3} {
		if got := o.Importance(rank.ID(u), 9); got != want {
			t.Errorf("URL %d: %v, want %v", u, got, want)
		}
	}
}
