package bustest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"kumo/internal/cluster/bus"
)

// A watchRecorder records the entries that a watcher receives.
type watchRecorder struct {
	mu     sync.Mutex
	order  []bus.Entry
	synced chan struct{} // closed by the zero Entry
	more   chan struct{} // gets an element after each entry
}

// watch watches until the test ends.
func watch(t *testing.T, b bus.Bus, prefix string) *watchRecorder {
	s := &watchRecorder{synced: make(chan struct{}), more: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = b.Watch(ctx, prefix, s.record) }) // it returns when ctx ends
	t.Cleanup(func() { cancel(); wg.Wait() })
	return s
}

func (s *watchRecorder) record(e bus.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Key == "" {
		close(s.synced)
		return
	}
	s.order = append(s.order, e)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// waitFor waits until the last recorded state of a key has a revision, and returns all states of the key.
func (s *watchRecorder) waitFor(t *testing.T, key string, rev uint64) (states []bus.Entry) {
	t.Helper()
	for {
		states = s.of(key)
		if len(states) > 0 && states[len(states)-1].Revision >= rev {
			return states
		}
		wait(t, s.more, fmt.Sprintf("revision %d of %s, after %d states,", rev, key, len(states)))
	}
}

func (s *watchRecorder) of(key string) (states []bus.Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.order {
		if e.Key == key {
			states = append(states, e)
		}
	}
	return states
}

// watched writes several keys concurrently while other nodes watch.
func watched(t *testing.T, join Join) {
	const keys, writes = 4, 25
	ctx := limit(t)
	writer := join(t, "watch~0")
	var watchers []*watchRecorder
	for i := range 3 {
		watchers = append(watchers, watch(t, join(t, node("watch", i+1)), "watch/"))
		wait(t, watchers[i].synced, "the current values")
	}
	var last [keys]uint64
	var wg sync.WaitGroup
	for k := range keys {
		wg.Go(func() {
			for i := range writes {
				rev, err := writer.Put(ctx, fmt.Sprint("watch/", k), fmt.Append(nil, i), last[k])
				if err != nil {
					t.Error(err)
					return
				}
				last[k] = rev
			}
		})
	}
	wg.Wait()
	for _, w := range watchers {
		for k, rev := range last {
			states := w.waitFor(t, fmt.Sprint("watch/", k), rev)
			inOrder(t, states)
			if final := states[len(states)-1]; string(final.Value) != fmt.Sprint(writes-1) || final.Revision != rev {
				t.Errorf("the last state is %v, want value %d at revision %d", final, writes-1, rev)
			}
		}
	}
}

func inOrder(t *testing.T, states []bus.Entry) {
	t.Helper()
	for i := 1; i < len(states); i++ {
		if states[i].Revision < states[i-1].Revision {
			t.Errorf("%v was received after %v", states[i], states[i-1])
		}
	}
}

func watchedLate(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "late~1")
	kept, err := b.Put(ctx, "late/kept", []byte("old"), 0)
	check(t, err)
	gone, err := b.Put(ctx, "late/gone", []byte("x"), 0)
	check(t, err)
	check(t, b.Delete(ctx, "late/gone", gone))
	kept, err = b.Put(ctx, "late/kept", []byte("new"), kept)
	check(t, err)

	s := watch(t, join(t, "late~2"), "late/")
	wait(t, s.synced, "the current values")
	all := s.of("late/kept") // a server that lags behind has earlier states, too
	inOrder(t, all)
	if n := len(all); n == 0 || string(all[n-1].Value) != "new" || all[n-1].Revision != kept {
		t.Errorf("a late watcher received %v, want the current value at the end", all)
	}
	if all := s.of("late/gone"); len(all) > 0 && all[len(all)-1].Value != nil {
		t.Errorf("a late watcher received %v of a key that was deleted before", all)
	}
	check(t, b.Delete(ctx, "late/kept", kept))
	states := s.waitFor(t, "late/kept", kept+1)
	if end := states[len(states)-1]; end.Value != nil {
		t.Errorf("a deleted key has the value %q", end.Value)
	}
	again, err := b.Put(ctx, "late/gone", nil, 0)
	check(t, err)
	states = s.waitFor(t, "late/gone", again)
	if end := states[len(states)-1]; end.Value == nil {
		t.Error("an empty value was received as a deletion")
	}
}

func watchedPrefix(t *testing.T, join Join) {
	ctx, b := limit(t), join(t, "prefix~1")
	for _, key := range []string{"prefix/ab", "prefix/abc/d", "prefix/b", "prefix2"} {
		check(t, put(ctx, b, key, "x", 0))
	}
	for keys, want := range map[string]int{"prefix/": 3, "prefix/abc/": 1, "prefix/ab": 1, "prefix2": 1, "prefix": 0} {
		s := watch(t, b, keys)
		wait(t, s.synced, "the current values")
		if len(s.order) != want {
			t.Errorf("keys %q: told %v, want %d", keys, s.order, want)
		}
	}
}
