package rank

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTold: the worth of links is reported at first, and again when it changes the place.
func TestTold(t *testing.T) {
	told := NewReports(1)
	told.Grow(1)
	var said []float32
	for links := float32(1); links <= 20; links++ {
		if more := told.Delta(0, links); more != 0 {
			said = append(said, more)
			told.Add(0, more)
		}
	}
	want := []float32{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3} // 1 to 8, 10, 12, 14, 16, 19
	if len(said) != len(want) || told.Worth(0) != 19 {
		t.Errorf("%v were told, %v in all", said, told.Worth(0))
	}
	if less := told.Delta(0, 4); less != -15 {
		t.Errorf("of 4 after 19 %v", less)
	}
}

// TestToldAddsUp: however worth changes, the sum of the reports is within a place of it, and equals the worth in
// Reports.
func TestToldAddsUp(t *testing.T) {
	const seed = 3
	t.Log("seed", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	told := NewReports(0.15)
	told.Grow(1)
	sum, worth := 0.0, float32(0.001)
	for range 100_000 {
		worth = max(1e-6, min(worth*float32(math.Exp(dice.NormFloat64()/10)), 1e6))
		more := told.Delta(0, worth)
		told.Add(0, more)
		sum += float64(more)
		if has := float64(told.Worth(0)); math.Abs(has-sum) > 0.005*(0.15+sum) {
			t.Fatalf("%v was told, and %v is noted", sum, has)
		}
		if off := math.Abs(sum-float64(worth)) / (0.15 + float64(worth)); off > 0.15 {
			t.Fatalf("%v was told of %v", sum, worth)
		}
	}
}

// TestWhatChangedMostIsToldAgain: as many URLs are reported again as the budget allows, those with the greatest changes
// first.
func TestWhatChangedMostIsToldAgain(t *testing.T) {
	const n = 1000
	told := NewReports(1)
	told.Grow(n + 1)
	worth := func(u ID) float32 { return 10 + float32(u) }
	choose := func() (places, chosen int) {
		var c Histogram
		for u := range ID(n + 1) {
			told.Count(&c, u, worth(u))
		}
		places = told.Threshold(&c)
		for u := range ID(n) {
			if told.Changed(u, worth(u), places) {
				chosen++
			}
		}
		if told.Changed(n, 1e6, places) {
			t.Error("what was never told is not told again")
		}
		return places, chosen
	}
	for u := range ID(n) {
		told.Add(u, 10)
	}
	if _, chosen := choose(); chosen != 0 {
		t.Errorf("%d are told again before a link was found", chosen)
	}
	told.AddBudget(800)
	if places, chosen := choose(); chosen > 200 || chosen < 50 || told.Changed(ID(n-chosen-1), worth(ID(n-chosen-1)),
		places) {
		t.Errorf("%d are told again for 800 links, of %d places", chosen, places)
	}
	told.AddBudget(8000)
	if places, chosen := choose(); chosen < 950 || places != 1 {
		t.Errorf("%d are told again, of %d places", chosen, places)
	}
}
