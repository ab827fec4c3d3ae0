package rank

import "testing"

// TestTold: what is kept back is less than an eighth of what was told, and nothing of it is lost.
func TestTold(t *testing.T) {
	var told Told
	if told.Any() {
		t.Error("nothing was told yet")
	}
	told.Tell(16)
	for i, want := range []float32{0, 2, 0, 0, 3} {
		if got := told.Keep(1); got != want {
			t.Errorf("link %d: %v is to be told, want %v", i, got, want)
		}
	}
	if !told.Any() || told != (Told{worth: 21}) {
		t.Errorf("%+v", told)
	}
}
