package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestChiSquareP compares with tables, and with the closed form exp(-x/2) for two degrees of freedom.
func TestChiSquareP(t *testing.T) {
	for _, c := range []struct {
		chi2 float64
		df   int
		want float64
	}{
		{3.841459, 1, 0.05}, {6.634897, 1, 0.01}, {16.918978, 9, 0.05}, {29.588298, 10, 0.001},
		{124.342113, 100, 0.05}, {82.358136, 100, 0.90}, {0, 5, 1}, {2000, 3, 0}, {1e-9, 1000, 1},
	} {
		if p := ChiSquareP(c.chi2, c.df); math.Abs(p-c.want) > 1e-7 {
			t.Errorf("chi2 %v with %d degrees of freedom: p = %v, want %v", c.chi2, c.df, p, c.want)
		}
	}
	for x := 0.01; x < 60; x *= 1.3 {
		if p, want := ChiSquareP(x, 2), math.Exp(-x/2); math.Abs(p/want-1) > 1e-11 {
			t.Errorf("chi2 %v with 2 degrees of freedom: p = %v, want %v", x, p, want)
		}
	}
}

// TestChance tests that a tenth of the series of throws with a fair die have p below 0.1, and all series with a loaded
// die have p below 0.001.
func TestChance(t *testing.T) {
	rng, low := rand.New(rand.NewPCG(1, 2)), 0
	for range 1000 {
		fair, loaded := make([]int, 6), make([]int, 6)
		for range 1000 {
			a := rng.IntN(6)
			fair[a]++
			loaded[max(a, rng.IntN(6))]++
		}
		if UniformP(fair) < 0.1 {
			low++
		}
		if p := UniformP(loaded); p > 0.001 {
			t.Errorf("loaded die %v: p = %v", loaded, p)
		}
	}
	if low < 70 || low > 130 {
		t.Errorf("%d of 1,000 fair throws have a p below 0.1, want about 100", low)
	}
	if p := UniformP([]int{7}); p != 1 {
		t.Errorf("one count: p = %v", p)
	}
}
