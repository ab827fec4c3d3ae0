package random_test

import (
	"testing"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/random"
	"kumo/internal/state/rank/ranktest"
)

func TestOrder(t *testing.T) { ranktest.Run(t, func() rank.Order { return random.New(1) }) }

// TestPlacesAreAsLikely tests that places have equal probability, by chi-square with p = 0.001.
func TestPlacesAreAsLikely(t *testing.T) {
	const n, places = 256_000, 256
	o, counts := random.New(5), map[rank.Place]int{}
	for u := range rank.ID(n) {
		counts[rank.PlaceOf(o.Importance(u, 0))]++
	}
	chi := 0.0
	for _, c := range counts {
		d := float64(c) - n/places
		chi += d * d / (n / places)
	}
	if len(counts) != places || chi > 330 {
		t.Errorf("%d places, chi-square %v", len(counts), chi)
	}
	if a, b := random.New(1).Importance(7, 0), random.New(2).Importance(7, 0); a == b {
		t.Errorf("two seeds have the same order: %v", a)
	}
}
