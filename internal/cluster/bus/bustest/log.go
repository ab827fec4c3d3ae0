package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

func node(name string, i int) strategy.Node { return strategy.Node(fmt.Sprintf("%s~%d", name, i)) }

func appended(t *testing.T, join Join) {
	const entries = 300
	ctx := limit(t)
	a, b := join(t, "log~1"), join(t, "log~2")
	wantLast(t, a, "log", 0, "")
	wantLog(t, b, "log", 0)
	numbers := []uint64{0}
	var want []string
	for i := range entries {
		data := bytes.Repeat([]byte{byte(i)}, i*i%5000)
		n, err := a.Append(ctx, "log", data, numbers[i])
		check(t, err)
		if n <= numbers[i] {
			t.Fatalf("number %d after %d", n, numbers[i])
		}
		numbers, want = append(numbers, n), append(want, string(data))
	}
	for _, from := range []int{0, 1, entries / 2, entries - 1, entries} {
		wantLog(t, b, "log", numbers[from], want[from:]...)
	}
	if n, data, err := b.Last(ctx, "log"); n != numbers[entries] || string(data) != want[entries-1] || err != nil {
		t.Errorf("the last entry is %d with %d bytes, %v", n, len(data), err)
	}
	enough, calls := errors.New("enough"), 0
	err := b.Read(ctx, "log", 0, func(uint64, []byte) error { calls++; return enough })
	if !errors.Is(err, enough) || calls != 1 {
		t.Errorf("Read ended with %v after %d calls of a function that returned an error", err, calls)
	}
}

func wantLog(t *testing.T, b bus.Bus, log string, after uint64, want ...string) {
	t.Helper()
	var got []string
	check(t, b.Read(limit(t), log, after, func(n uint64, data []byte) error {
		if n <= after {
			t.Errorf("entry %d came after %d", n, after)
		}
		after = n
		got = append(got, string(data))
		return nil
	}))
	if len(got) != len(want) {
		t.Fatalf("%d entries after %d, want %d", len(got), after, len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("entry %d is %.20q with %d bytes, want %.20q with %d", i, got[i], len(got[i]), want[i], len(want[i]))
		}
	}
}

// fenced has two nodes append to one log, each after the entry that it believes to be the last. All acknowledged
// entries must be in the log, once and in order.
func fenced(t *testing.T, join Join) {
	const each = 20
	ctx := limit(t)
	var mu sync.Mutex
	done := map[uint64]string{}
	var wg sync.WaitGroup
	for i := range 2 {
		b := join(t, node("fence", i))
		wg.Go(func() {
			for k := range each {
				data := fmt.Sprint(i, " ", k)
				n, err := appendOne(ctx, b, "fence", data)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				done[n] = data
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b := join(t, "fence~3")
	check(t, b.Read(ctx, "fence", 0, func(n uint64, data []byte) error {
		if done[n] != string(data) {
			t.Errorf("entry %d is %q, its writer was acknowledged %q", n, data, done[n])
		}
		delete(done, n)
		return nil
	}))
	if len(done) != 0 {
		t.Errorf("%d acknowledged entries are missing", len(done))
	}
	last, _, err := b.Last(ctx, "fence")
	check(t, err)
	_, err = b.Append(ctx, "fence", []byte("x"), last+1)
	stale(t, "an entry after one that never existed", err)
	_, err = b.Append(ctx, "fence", []byte("x"), 0)
	stale(t, "a first entry of a log that is not empty", err)
}

// appendOne appends an entry after the last one, whichever that is.
func appendOne(ctx context.Context, b bus.Bus, log, data string) (uint64, error) {
	for {
		last, _, err := b.Last(ctx, log)
		if err != nil {
			return 0, err
		}
		n, err := b.Append(ctx, log, []byte(data), last)
		if !errors.Is(err, bus.ErrStale) {
			return n, err
		}
	}
}

func dropped(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "drop~1")
	var last [2]uint64
	for i := range 10 {
		for log := range last {
			n, err := b.Append(ctx, fmt.Sprint("drop/", log), fmt.Append(nil, log, i), last[log])
			check(t, err)
			last[log] = n
		}
	}
	check(t, b.Drop(ctx, "drop/0"))
	check(t, b.Drop(ctx, "drop/never"))
	wantLog(t, b, "drop/0", 0)
	wantLast(t, b, "drop/0", 0, "")
	_, err := b.Append(ctx, "drop/0", []byte("x"), last[0])
	stale(t, "an entry after one that was dropped", err)
	n, err := b.Append(ctx, "drop/0", []byte("new"), 0)
	check(t, err)
	if n <= last[0] {
		t.Errorf("number %d in a log that had %d before it was dropped", n, last[0])
	}
	wantLog(t, b, "drop/0", 0, "new")
	wantLast(t, b, "drop/1", last[1], "1 9")
}
