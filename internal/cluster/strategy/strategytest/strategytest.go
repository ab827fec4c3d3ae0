// Package strategytest implements the conformance tests of strategies.
package strategytest

import (
	"reflect"
	"sync"
	"testing"

	"kumo/internal/cluster/strategy"
)

// Run tests the strategies that fresh makes; each is of the same node, with the same configuration and seed, and was
// told nothing. If they are Placers, their contract is tested, too.
func Run(t *testing.T, fresh func() strategy.Strategy) {
	t.Run("the same events have the same answers", func(t *testing.T) { deterministic(t, fresh) })
	t.Run("events and actions are not kept", func(t *testing.T) { keepsNoSlice(t, fresh) })
	t.Run("a view does not change", func(t *testing.T) { immutable(t, fresh()) })
	t.Run("who asks for an owner allocates nothing", func(t *testing.T) { allocatesNothing(t, fresh()) })
	if _, ok := fresh().(strategy.Placer); ok {
		t.Run("placers", func(t *testing.T) { placers(t, func() strategy.Placer { return fresh().(strategy.Placer) }) })
	}
}

func deterministic(t *testing.T, fresh func() strategy.Strategy) {
	a, b := newDriver(t, fresh()), newDriver(t, fresh())
	for i := range steps {
		one, two := a.step(), b.step()
		if !reflect.DeepEqual(one, two) {
			t.Fatalf("step %d: actions %v of one, %v of the other", i, one, two)
		}
		sameView(t, a.s.View(), b.s.View())
	}
}

// keepsNoSlice overwrites what one of two strategies was given, after each step.
func keepsNoSlice(t *testing.T, fresh func() strategy.Strategy) {
	a, b := newDriver(t, fresh()), newDriver(t, fresh())
	b.overwrite = true
	for i := range steps {
		if one, two := a.step(), b.step(); !reflect.DeepEqual(one, two) {
			t.Fatalf("step %d: actions %v, and %v where slices were used again", i, one, two)
		}
		sameView(t, a.s.View(), b.s.View())
	}
}

// immutable asks views from other goroutines while the strategy goes on.
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
					t.Errorf("a view said %v, then %v", want, got)
					return
				}
				select {
				case <-end: // asked once more at least since the last step
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
			t.Fatalf("%s is %q's (state %v) for one, %q's (state %v) for the other", h, one, state, two, other)
		}
	}
}
