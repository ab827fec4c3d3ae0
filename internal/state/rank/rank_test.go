package rank_test

import (
	"math"
	"testing"

	"kumo/internal/state/rank"
)

// TestPlaceOf: places are logarithms to the base of the eighth root of 2.
func TestPlaceOf(t *testing.T) {
	for x := 1e-9; x < 1e9; x *= 1.0137 {
		want := rank.Place(320 - math.Floor(8*math.Log2(x)))
		if got := rank.PlaceOf(x); got != want {
			t.Fatalf("%v: place %d, want %d", x, got, want)
		}
	}
	for i := range 16 { // at the limits, and just below them
		x := math.Exp2(float64(i) / 8)
		if at, below := rank.PlaceOf(x*(1+1e-12)), rank.PlaceOf(x*(1-1e-12)); at != 320-rank.Place(i) || below != at+1 {
			t.Errorf("2^(%d/8): %d, and below it %d", i, at, below)
		}
	}
	for _, x := range []float64{math.SmallestNonzeroFloat64, math.MaxFloat64} {
		if p := rank.PlaceOf(x); p < 0 {
			t.Errorf("%v: place %d", x, p)
		}
	}
}

func TestLifts(t *testing.T) {
	for _, x := range []float64{0.3, 1, 700} {
		for _, factor := range []float64{0.25, 1, 8} {
			if got, want := rank.PlaceOf(x).With(rank.LiftOf(factor)), rank.PlaceOf(x*factor); got != want {
				t.Errorf("%v times %v: place %d, want %d", x, factor, got, want)
			}
			if got := rank.LiftOf(factor).Factor(); got != factor {
				t.Errorf("%v is a factor of %v", factor, got)
			}
		}
	}
	if p := rank.PlaceOf(math.MaxFloat64).With(rank.LiftOf(1e300)); p != 0 {
		t.Errorf("the first place is %d", p)
	}
	for priority, want := range map[float64]rank.Lift{0: -8, 0.5: 0, 0.75: 4, 1: 8, 7: 0, -1: 0, math.NaN(): 0} {
		if got := rank.OfSitemap(priority); got != want {
			t.Errorf("priority %v: %d, want %d", priority, got, want)
		}
	}
}

func TestPreferences(t *testing.T) {
	var all rank.Preferences
	for _, rule := range []string{`/news/=4`, `^https://a\.example/=0.5`, `[?&]page=\d+=1e-300`} {
		p, err := rank.ParsePreference(rule)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p...)
	}
	for url, want := range map[string]rank.Lift{
		"https://a.example/news/1":       8, // 4 times a half
		"https://b.example/news/1":       16,
		"https://a.example/":             -8,
		"https://b.example/x":            0,
		"https://b.example/news/?page=7": -144, // the limit of rules downward, and 4 times
	} {
		if got := all.Lift(url); got != want {
			t.Errorf("%s: %d, want %d", url, got, want)
		}
	}
	if got := rank.Preferences(nil).Lift("https://a.example/"); got != 0 {
		t.Errorf("without rules: %d", got)
	}
	for _, bad := range []string{"", "=2", "x", "x=", "x=0", "x=-1", "x=Inf", "x=NaN", "(=2"} {
		if p, err := rank.ParsePreference(bad); err == nil {
			t.Errorf("%q is taken: %v", bad, p)
		}
	}
}
