package inproc_test

import (
	"slices"
	"testing"

	"kumo/internal/cluster/bus/inproc"
)

// TestTrimmed: trimmed entries are gone at once, so that a test notices a reader that still needs them.
func TestTrimmed(t *testing.T) {
	ctx, b := t.Context(), join(t, inproc.New(1), "a~1")
	var numbers []uint64
	last := uint64(0)
	for range 5 {
		n, err := b.Append(ctx, "log", nil, last)
		if err != nil {
			t.Fatal(err)
		}
		last, numbers = n, append(numbers, n)
	}
	for _, c := range []struct {
		before uint64
		left   []uint64
	}{{0, numbers}, {numbers[0], numbers}, {numbers[3], numbers[3:]}, {numbers[1], numbers[3:]}, {last + 1, numbers[4:]}} {
		if err := b.Trim(ctx, "log", c.before); err != nil {
			t.Fatal(err)
		}
		var got []uint64
		err := b.Read(ctx, "log", 0, func(n uint64, _ []byte) error { got = append(got, n); return nil })
		if err != nil || !slices.Equal(got, c.left) {
			t.Errorf("trimmed to %d of %d, there is %d, %v; want %d", c.before, numbers, got, err, c.left)
		}
	}
}
