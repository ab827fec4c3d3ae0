// Package bustest implements the conformance tests of buses.
//
// RunMessenger tests any bus.Messenger. Run tests a bus.Bus.
package bustest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/cluster/bus"
	"kumo/internal/cluster/strategy"
)

// timeout is how long a test waits for an expected event.
const timeout = 30 * time.Second

// A Join returns the bus of another node of the same crawl. The bus is closed when the test ends.
type Join func(t *testing.T, node strategy.Node) bus.Bus

// Run tests the buses that join returns, also as messengers. All tests share one crawl, whose registry and logs are
// empty at first.
func Run(t *testing.T, join Join) {
	RunMessenger(t, func(t *testing.T, name string) (bus.Messenger, strategy.Node) {
		node := strategy.Node(name + "~1")
		return join(t, node), node
	})
	for _, c := range []struct {
		name string
		test func(*testing.T, Join)
	}{
		{"a value changes by compare-and-set", compareAndSet},
		{"concurrent increments are not lost", counted},
		{"a value written by one node is read by another", linear},
		{"a watcher sees each key's states in order", watched},
		{"a late watcher sees the current values", watchedLate},
		{"a watcher sees only keys with its prefix", watchedPrefix},
		{"a log has its entries in order", appended},
		{"only one of two writers appends", fenced},
		{"logs are separate and can be dropped", dropped},
		{"a log can be appended to after a trim", trimmed},
		{"a log can be read and written while it is trimmed", trimmedAmid},
		{"values and entries may have the maximum size", large},
		{"invalid keys are refused", badKeys},
		{"calls end with their context", ended},
		{"a closed registry returns ErrClosed", closed},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, join) })
	}
}

func compareAndSet(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "cas~1")
	first, err := b.Put(ctx, "cas/a", []byte("one"), 0)
	check(t, err)
	stale(t, "a second creation", put(ctx, b, "cas/a", "x", 0))
	stale(t, "a revision that never existed", put(ctx, b, "cas/a", "x", first+100))
	second, err := b.Put(ctx, "cas/a", []byte("two"), first)
	check(t, err)
	if second <= first || first == 0 {
		t.Errorf("revisions %d, then %d", first, second)
	}
	stale(t, "an old revision", put(ctx, b, "cas/a", "x", first))
	wantEntry(t, b, bus.Entry{Key: "cas/a", Value: []byte("two"), Revision: second})
	stale(t, "deleting an old revision", b.Delete(ctx, "cas/a", first))
	check(t, b.Delete(ctx, "cas/a", second))
	if e, err := b.Get(ctx, "cas/a"); err != nil || e.Key != "" || e.Value != nil || e.Revision != 0 {
		t.Errorf("a deleted key is %v, %v", e, err)
	}
	stale(t, "a revision from before the deletion", put(ctx, b, "cas/a", "x", second))
	third, err := b.Put(ctx, "cas/a", []byte{}, 0)
	check(t, err)
	if third <= second {
		t.Errorf("revision %d after %d", third, second)
	}
	wantEntry(t, b, bus.Entry{Key: "cas/a", Value: []byte{}, Revision: third})
	check(t, b.Delete(ctx, "cas/never", 0))
	stale(t, "deleting an existing key at 0", b.Delete(ctx, "cas/a", 0))
}

func wantEntry(t *testing.T, b bus.Bus, want bus.Entry) {
	t.Helper()
	got, err := b.Get(limit(t), want.Key)
	check(t, err)
	if got.Key != want.Key || got.Revision != want.Revision || got.Value == nil || !bytes.Equal(got.Value, want.Value) {
		t.Errorf("got %.80v, want %.80v", got, want)
	}
}

// counted has many goroutines of three nodes increment one number: no two may read the same value and both write.
func counted(t *testing.T, join Join) {
	const workers, each = 9, 10
	ctx := limit(t)
	buses := []bus.Bus{join(t, "count~1"), join(t, "count~2"), join(t, "count~3")}
	var wg sync.WaitGroup
	wrote := make([][]uint64, workers)
	for i := range workers {
		wg.Go(func() {
			for range each {
				rev, err := raise(ctx, buses[i%len(buses)], "count")
				if err != nil {
					t.Error(err)
					return
				}
				wrote[i] = append(wrote[i], rev)
			}
		})
	}
	wg.Wait()
	for _, revs := range wrote {
		if !slices.IsSorted(revs) {
			t.Errorf("the revisions of one writer do not grow: %d", revs)
		}
	}
	e, err := buses[0].Get(ctx, "count")
	check(t, err)
	if len(e.Value) != workers*each {
		t.Errorf("counted to %d, want %d", len(e.Value), workers*each)
	}
}

// raise appends one byte to a value, and retries if other writers come first.
func raise(ctx context.Context, b bus.Bus, key string) (uint64, error) {
	for {
		e, err := b.Get(ctx, key)
		if err != nil {
			return 0, err
		}
		rev, err := b.Put(ctx, key, append(e.Value, 'x'), e.Revision)
		if !errors.Is(err, bus.ErrStale) {
			return rev, err
		}
	}
}

func linear(t *testing.T, join Join) {
	ctx := limit(t)
	a, b := join(t, "linear~1"), join(t, "linear~2")
	rev := uint64(0)
	for i := range 50 {
		value := fmt.Append(nil, i)
		var err error
		rev, err = a.Put(ctx, "linear", value, rev)
		check(t, err)
		wantEntry(t, b, bus.Entry{Key: "linear", Value: value, Revision: rev})
		a, b = b, a
	}
}

func large(t *testing.T, join Join) {
	ctx := limit(t)
	a, b := join(t, "large~1"), join(t, "large~2")
	most := bytes.Repeat([]byte("0123456789abcdef"), bus.MaxData/16)
	rev, err := a.Put(ctx, "large", most, 0)
	check(t, err)
	wantEntry(t, b, bus.Entry{Key: "large", Value: most, Revision: rev})
	n, err := a.Append(ctx, "large", most, 0)
	check(t, err)
	if got, data, err := b.Last(ctx, "large"); err != nil || got != n || !bytes.Equal(data, most) {
		t.Errorf("the last entry is %d with %d bytes, %v, want %d", got, len(data), err, n)
	}
	more := append(most, 'x')
	_, putting := a.Put(ctx, "large/more", more, 0)
	_, appending := a.Append(ctx, "large/more", more, 0)
	wantErrors(t, "of one byte too much", bus.ErrTooLarge, map[string]error{"Put": putting, "Append": appending})
}

func badKeys(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "bad~1")
	for _, key := range []string{"", "a b", "a.b", "a*", ">", "a//b", "/a", "a/", "ä", strings.Repeat("x", 201)} {
		_, getting := b.Get(ctx, key)
		_, appending := b.Append(ctx, key, nil, 0)
		if put(ctx, b, key, "x", 0) == nil || getting == nil || appending == nil || b.Drop(ctx, key) == nil ||
			b.Trim(ctx, key, 1) == nil {
			t.Errorf("the invalid key %q is accepted", key)
		}
	}
	check(t, put(ctx, b, "aZ09-_~/"+strings.Repeat("x", 192), "x", 0))
}

func ended(t *testing.T, join Join) {
	b := join(t, "ended~1")
	ctx, cancel := context.WithCancel(t.Context())
	watching := watchNothing(ctx, t, b, "ended")
	cancel()
	if err := wait(t, watching, "the watch's end"); !errors.Is(err, context.Canceled) {
		t.Errorf("Watch ended with %v", err)
	}
	_, getting := b.Get(ctx, "ended")
	_, appending := b.Append(ctx, "ended", nil, 0)
	wantErrors(t, "under a context that has ended", bus.ErrUnavailable,
		map[string]error{"Put": put(ctx, b, "ended", "x", 0), "Get": getting, "Append": appending})
}

func closed(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "closed~1")
	watching := watchNothing(ctx, t, b, "closed")
	check(t, b.Close())
	_, getting := b.Get(ctx, "closed")
	_, appending := b.Append(ctx, "closed", nil, 0)
	wantErrors(t, "of a closed bus", bus.ErrClosed, map[string]error{
		"Watch": wait(t, watching, "the watch's end"),
		"Put":   put(ctx, b, "closed", "x", 0), "Get": getting, "Append": appending, "Trim": b.Trim(ctx, "closed", 1),
	})
}

// watchNothing starts to watch an empty prefix. It returns a channel for the watch's result.
func watchNothing(ctx context.Context, t *testing.T, b bus.Bus, prefix string) <-chan error {
	synced, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- b.Watch(ctx, prefix, func(bus.Entry) { close(synced) }) }()
	wait(t, synced, "the current values")
	return ended
}

// wantErrors checks that several calls return the same error.
func wantErrors(t *testing.T, when string, want error, got map[string]error) {
	t.Helper()
	for call, err := range got {
		if !errors.Is(err, want) {
			t.Errorf("%s %s: %v", call, when, err)
		}
	}
}

func put(ctx context.Context, b bus.Bus, key, value string, rev uint64) error {
	_, err := b.Put(ctx, key, []byte(value), rev)
	return err
}

func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

func wait[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(timeout):
		t.Fatalf("%s did not come", what)
	}
	return v
}

func stale(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, bus.ErrStale) {
		t.Errorf("%s: %v, want %v", what, err, bus.ErrStale)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
