package strategytest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/cluster/strategy/strategytest"
)

// broken are strategies that break the contract, with the test that must detect it.
var broken = map[string]struct {
	fresh  func() strategy.Strategy
	notice string
}{
	"forgetful": {func() strategy.Strategy { return &forgetful{sound()} }, "the_same_events_yield_the_same_actions"},
	"keeper":    {func() strategy.Strategy { return &keeper{Placer: sound()} }, "slices_are_not_retained"},
	"changing":  {func() strategy.Strategy { return &changing{sound(), new(int)} }, "a_view_does_not_change"},
	"wasteful":  {func() strategy.Strategy { return &wasteful{sound()} }, "Owner_allocates_no_memory"},
	"sticky":    {func() strategy.Strategy { return &sticky{Placer: sound()} }, "views_depend_only_on_the_members"},
	"exclusive": {func() strategy.Strategy { return &exclusive{sound()} }, "every_host_has_a_member"},
	"haunted":   {func() strategy.Strategy { return &haunted{sound()} }, "without_members"},
	"boaster": {func() strategy.Strategy { return &boaster{shard.New(shard.Config{Second: shard.Paper})} },
		"only_necessary_moves"},
}

func sound() strategy.Placer { return shard.New(shard.Config{Slots: 8}) }

// TestNotices runs the suite on each of them in a process of its own, since the suite fails there.
func TestNotices(t *testing.T) {
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestBroken$", "-test.v")
			cmd.Env = append(os.Environ(), "BROKEN="+name)
			out, err := cmd.CombinedOutput()
			if err == nil || !fails(string(out), b.notice) {
				t.Errorf("%s is not noticed: %v\n%s", name, err, out)
			}
		})
	}
}

func fails(out, part string) bool {
	for line := range strings.Lines(out) {
		if strings.Contains(line, "--- FAIL") && strings.Contains(line, part) {
			return true
		}
	}
	return false
}

func TestBroken(t *testing.T) {
	b, ok := broken[os.Getenv("BROKEN")]
	if !ok {
		t.Skip("only in a process of its own")
	}
	strategytest.Run(t, b.fresh)
}

// A view implements strategy.View.
type view func(host string) (strategy.Node, strategy.State)

func (v view) Owner(host string) (strategy.Node, strategy.State) { return v(host) }

// forgetful sometimes omits an action, by a clock of its own.
type forgetful struct{ strategy.Placer }

var calls int

func (f *forgetful) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	if calls++; calls%5 == 0 {
		return out
	}
	return f.Placer.Step(now, in, out)
}

// keeper retains events until the next step.
type keeper struct {
	strategy.Placer
	in []strategy.Event
}

func (k *keeper) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	out = k.Placer.Step(now, k.in, out)
	k.in = in
	return out
}

// changing has views that depend on the number of steps.
type changing struct {
	strategy.Placer
	steps *int
}

func (c *changing) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	*c.steps++
	return c.Placer.Step(now, in, out)
}

func (c *changing) View() strategy.View {
	return view(func(string) (strategy.Node, strategy.State) {
		return strategy.Node(strings.Repeat("x", *c.steps)), strategy.Owned
	})
}

type wasteful struct{ strategy.Placer }

func (w *wasteful) View() strategy.View {
	v := w.Placer.View()
	return view(func(host string) (strategy.Node, strategy.State) {
		node, state := v.Owner(host + ".")
		return strategy.Node(strings.Clone(string(node))), state
	})
}

// sticky keeps all hosts at their first owner.
type sticky struct {
	strategy.Placer
	first strategy.View
}

func (s *sticky) View() strategy.View {
	if s.first == nil {
		if v := s.Placer.View(); owned(v) {
			s.first = v
		}
		return s.Placer.View()
	}
	return s.first
}

func owned(v strategy.View) bool {
	_, state := v.Owner("")
	return state == strategy.Owned
}

// exclusive does not place hosts with an empty name.
type exclusive struct{ strategy.Placer }

func (e *exclusive) Place(members []strategy.Member) strategy.View {
	v := e.Placer.Place(members)
	return view(func(host string) (strategy.Node, strategy.State) {
		if host == "" {
			return "", strategy.Unknown
		}
		return v.Owner(host)
	})
}

// haunted places hosts although there are no members.
type haunted struct{ strategy.Placer }

func (h *haunted) Place(members []strategy.Member) strategy.View {
	if len(members) > 0 {
		return h.Placer.Place(members)
	}
	return view(func(string) (strategy.Node, strategy.State) { return "ghost~1", strategy.Owned })
}

// boaster wrongly reports that it is minimal.
type boaster struct{ strategy.Placer }

func (boaster) Minimal() bool { return true }
