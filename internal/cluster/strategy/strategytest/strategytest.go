// Package strategytest implements the conformance tests of strategies.
package strategytest

import (
	"reflect"
	"sync"
	"testing"

	"kumo/internal/cluster/strategy"
)

// Run tests the strategies that fresh returns. Each must be new, of the same node, and have the same configuration and
// seed. Placers are also tested as such.
func Run(t *testing.T, fresh func() strategy.Strategy) {
	t.Run("the same events yield the same actions", func(t *testing.T) { deterministic(t, fresh) })
	t.Run("slices are not retained", func(t *testing.T) { keepsNoSlice(t, fresh) })
	t.Run("a view does not change", func(t *testing.T) { immutable(t, fresh()) })
	t.Run("Owner allocates no memory", func(t *testing.T) { allocatesNothing(t, fresh()) })
	if _, ok := fresh().(strategy.Placer); ok {
		t.Run("placers", func(t *testing.T) { placers(t, func() strategy.Placer { return fresh().(strategy.Placer) }) })
	}
}

func deterministic(t *testing.T, fresh func() strategy.Strategy) {
	a, b := newDriver(t, fresh()), newDriver(t, fresh())
	for i := range steps {
		one, two := a.step(), b.step()
		if !reflect.DeepEqual(one, two) {
			t.Fatalf("step %d: actions %v and %v differ", i, one, two)
		}
		sameView(t, a.s.View(), b.s.View())
	}
}

// keepsNoSlice overwrites the slices passed to one of two strategies after each step.
func keepsNoSlice(t *testing.T, fresh func() strategy.Strategy) {
	a, b := newDriver(t, fresh()), newDriver(t, fresh())
	b.overwrite = true
	for i := range steps {
		if one, two := a.step(), b.step(); !reflect.DeepEqual(one, two) {
			t.Fatalf("step %d: actions %v, but %v after slices were overwritten", i, one, two)
		}
		sameView(t, a.s.View(), b.s.View())
	}
}

// immutable reads views in other goroutines while the strategy continues.
func immutable(t *testing.T, s strategy.Strategy) {
	d := newDriver(t, s)
	var asking sync.WaitGroup
	defer asking.Wait()
	end := make(chan struct{})
	defer close(end)
	for range steps {
		d.step()
		v, want := s.View(), owners(s.View())
		asking.Go(func() {
			for {
				if got := owners(v); !reflect.DeepEqual(got, want) {
					t.Errorf("view changed from %v to %v", want, got)
					return
				}
				select {
				case <-end: // read at least once since the last step
					return
				default:
				}
			}
		})
	}
}

func allocatesNothing(t *testing.T, s strategy.Strategy) {
	d := newDriver(t, s)
	for range steps {
		d.step()
	}
	v := s.View()
	for _, h := range hosts {
		if n := testing.AllocsPerRun(100, func() { v.Owner(h) }); n > 0 {
			t.Fatalf("%v allocations for %q", n, h)
		}
	}
}

type answer struct {
	node  strategy.Node
	state strategy.State
}

func owners(v strategy.View) []answer {
	all := make([]answer, len(hosts))
	for i, h := range hosts {
		all[i].node, all[i].state = v.Owner(h)
	}
	return all
}

func sameView(t *testing.T, a, b strategy.View) {
	t.Helper()
	for _, h := range hosts {
		one, state := a.Owner(h)
		if two, other := b.Owner(h); one != two || state != other {
			t.Fatalf("owner of %s: %q (state %v) and %q (state %v)", h, one, state, two, other)
		}
	}
}
