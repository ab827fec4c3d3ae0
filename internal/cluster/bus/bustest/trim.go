package bustest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"kumo/internal/cluster/bus"
)

func trimmed(t *testing.T, join Join) {
	const entries = 40
	ctx := limit(t)
	a, b := join(t, "trim~1"), join(t, "trim~2")
	check(t, a.Trim(ctx, "trim/never", 7))
	wantLast(t, b, "trim/never", 0, "")
	numbers, want := fill(t, a, "trim/a", 0, entries)
	others, kept := fill(t, a, "trim/b", 0, entries)

	for most, cuts := 0, []int{0, 1, 10, 5, 10, entries - 1}; len(cuts) > 0; cuts = cuts[1:] { // part is already trimmed
		most = max(most, cuts[0])
		check(t, b.Trim(ctx, "trim/a", numbers[cuts[0]]))
		wantFrom(t, a, "trim/a", numbers, want, most)
		wantLast(t, a, "trim/a", numbers[entries-1], want[entries-1])
	}
	check(t, b.Trim(ctx, "trim/a", numbers[entries-1]+1000)) // of all entries
	wantLast(t, a, "trim/a", numbers[entries-1], want[entries-1])
	_, err := a.Append(ctx, "trim/a", nil, 0)
	stale(t, "a first entry of a trimmed log", err)
	_, err = a.Append(ctx, "trim/a", nil, numbers[entries-2])
	stale(t, "an entry after a trimmed one", err)
	check(t, a.Trim(ctx, "trim/a", 0))

	more, added := fill(t, b, "trim/a", numbers[entries-1], entries)
	wantFrom(t, a, "trim/a", more, added, 0)
	wantLog(t, b, "trim/a", more[0], added[1:]...)
	wantFrom(t, b, "trim/b", others, kept, 0)

	check(t, a.Drop(ctx, "trim/a"))
	wantLast(t, b, "trim/a", 0, "")
	again, anew := fill(t, b, "trim/a", 0, 3)
	if again[0] <= more[entries-1] {
		t.Errorf("number %d in a log that had %d before it was dropped", again[0], more[entries-1])
	}
	wantLog(t, a, "trim/a", 0, anew...)
}

// fill appends n entries after number last.
func fill(t *testing.T, b bus.Bus, log string, last uint64, n int) (numbers []uint64, want []string) {
	t.Helper()
	for i := range n {
		data := fmt.Sprint(log, " ", i, " after ", last)
		number, err := b.Append(limit(t), log, []byte(data), last)
		check(t, err)
		if number <= last {
			t.Fatalf("number %d after %d", number, last)
		}
		last, numbers, want = number, append(numbers, number), append(want, data)
	}
	return numbers, want
}

// wantFrom checks that Read passes on all entries from the one at index from on, any of those before, and all in order.
// Entries from before numbers[0] may also be read.
func wantFrom(t *testing.T, b bus.Bus, log string, numbers []uint64, want []string, from int) {
	t.Helper()
	next := 0
	check(t, b.Read(limit(t), log, 0, func(n uint64, data []byte) error {
		i := slices.Index(numbers, n)
		if i < 0 && n < numbers[0] {
			return nil
		}
		if i < next || i > max(next, from) || string(data) != want[i] {
			return fmt.Errorf("entry %d, at index %d, was read, but not the one at index %d", n, i, next)
		}
		next = i + 1
		return nil
	}))
	if next != len(want) {
		t.Errorf("Read ends after %d entries of %d", next, len(want))
	}
}

func wantLast(t *testing.T, b bus.Bus, log string, number uint64, data string) {
	t.Helper()
	if n, got, err := b.Last(limit(t), log); n != number || string(got) != data || err != nil {
		t.Errorf("the last entry of %s is %d %q, %v; want %d %q", log, n, got, err, number, data)
	}
}

// trimmedAmid has two nodes trim a log while one writes and one reads it. The reader must get all entries that are not
// trimmed when it begins.
func trimmedAmid(t *testing.T, join Join) {
	const entries = 120
	ctx := limit(t)
	writer, reader := join(t, "amid~1"), join(t, "amid~2")
	written := make(chan uint64, entries)
	var wg sync.WaitGroup
	for i := range 2 {
		b := join(t, node("amid", i+3))
		wg.Go(func() {
			for n := range written {
				if err := b.Trim(ctx, "amid", n-min(n, uint64(5*i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		defer close(written)
		last := uint64(0)
		for i := range entries {
			n, err := writer.Append(ctx, "amid", fmt.Append(nil, i), last)
			if err != nil {
				t.Error(err)
				return
			}
			last = n
			written <- n
		}
	})
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true // for a last pass
		default:
		}
		end, _, err := reader.Last(ctx, "amid")
		check(t, err)
		last := uint64(0)
		err = reader.Read(ctx, "amid", 0, func(n uint64, data []byte) error {
			if n <= last {
				return errors.New("entries out of order")
			}
			last = n
			return nil
		})
		if err != nil || last < end {
			t.Fatalf("the log ends at %d, Read ended at %d: %v", end, last, err)
		}
	}
}
