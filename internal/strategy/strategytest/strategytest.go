// Package strategytest is the contract that every strategy keeps.
package strategytest

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"kumo/internal/strategy"
)

// Run tests the strategies that fresh makes; each is of the same node, with the same configuration and seed, and was told nothing. If
// they are Placers, their contract is tested, too.
func Run(t *testing.T, fresh func() strategy.Strategy) {
	t.Run("the same events have the same answers", func(t *testing.T) { deterministic(t, fresh) })
	t.Run("events and actions are not kept", func(t *testing.T) { keepsNoSlice(t, fresh) })
	t.Run("a view does not change", func(t *testing.T) { immutable(t, fresh()) })
	t.Run("who asks for an owner allocates nothing", func(t *testing.T) { allocatesNothing(t, fresh()) })
	for _, at := range []int{0, 1, 7, steps - 1} {
		t.Run(fmt.Sprintf("what was saved after %d steps comes back", at), func(t *testing.T) { restored(t, fresh(), fresh(), at) })
	}
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
		if !bytes.Equal(snapshot(t, a.s), snapshot(t, b.s)) {
			t.Fatalf("step %d: two snapshots", i)
		}
		sameView(t, a.s.View(), b.s.View())
	}
}

// keepsNoSlice overwrites what one of two strategies was given, after each step.
func keepsNoSlice(t *testing.T, fresh func() strategy.Strategy) {
	a, b := newDriver(t, fresh()), newDriver(t, fresh())
	b.spoil = true
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

// restored saves a strategy after some steps, and goes on with what was saved beside it. A new process is told the members again.
// Actions are not compared: it may ask for its timers again.
func restored(t *testing.T, s, after strategy.Strategy, at int) {
	d := newDriver(t, s)
	for range at {
		d.step()
	}
	saved := snapshot(t, s)
	if err := after.Restore(bytes.NewReader(saved)); err != nil {
		t.Fatal(err)
	}
	if got := snapshot(t, after); !bytes.Equal(got, saved) {
		t.Fatalf("after %d steps %q was saved, then %q", at, saved, got)
	}
	e := d.fork(after)
	d.tellMembers()
	e.tellMembers()
	for i := at; i < steps; i++ {
		sameView(t, s.View(), after.View())
		d.step()
		e.step()
		if !bytes.Equal(snapshot(t, s), snapshot(t, after)) {
			t.Fatalf("saved after %d steps, another one after %d", at, i)
		}
	}
	sameView(t, s.View(), after.View())
}

func snapshot(t *testing.T, s strategy.Strategy) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.Snapshot(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
