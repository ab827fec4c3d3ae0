package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
)

// hasteful says that what is to be persisted is, before it is.
type hasteful struct{ strategy.Strategy }

func (h hasteful) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	from := len(out)
	out = h.Strategy.Step(now, in, out)
	for i := from; i < len(out); i++ {
		if p, ok := out[i].(strategy.Persist); ok && len(p.Data) > 32 { // what a new control unit writes first is short
			out = slices.Delete(out, i, i+1)
			i--
			out = h.Strategy.Step(now, []strategy.Event{strategy.Persisted{ID: p.ID, Number: p.After}}, out)
		}
	}
	return out
}

// heedless tells the control unit nothing of what has come.
type heedless struct{ strategy.Strategy }

func (h heedless) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	in = slices.DeleteFunc(slices.Clone(in), func(e strategy.Event) bool { _, is := e.(strategy.Held); return is })
	return h.Strategy.Step(now, in, out)
}

// early takes what a dead node had for free as soon as it is dead.
type early struct{ strategy.Strategy }

func (h early) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	in = slices.Clone(in)
	for i, e := range in {
		if m, ok := e.(strategy.Members); ok {
			m.Settled = m.Epoch
			in[i] = m
		}
	}
	return h.Strategy.Step(now, in, out)
}

// deaf does not hear that a host it holds is another's: it keeps it.
type deaf struct{ strategy.Strategy }

func (h deaf) Step(now time.Time, in []strategy.Event, out []strategy.Action) []strategy.Action {
	out = h.Strategy.Step(now, in, out)
	return slices.DeleteFunc(out, func(a strategy.Action) bool { _, is := a.(strategy.HandOver); return is })
}

// forgetful forgets what has gone by its host's name alone, whatever has come of the host meanwhile.
type forgetful struct{ member.Member }

func (f forgetful) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	out = f.Member.Step(now, events, out)
	for i, a := range out {
		if g, ok := a.(member.Forget); ok && g.Moved != nil {
			gone := g.Moved
			g.Moved = func(host string, _ uint64) bool { return gone(host, 0) }
			out[i] = g
		}
	}
	return out
}

// TestAHostMayComeWhileItGoes lets nodes race for hosts under a seed where a node hands over a host while a third one
// hands the same host to it: what comes stays. It would not if it were forgotten with what has gone.
func TestAHostMayComeWhileItGoes(t *testing.T) {
	cfg := LAN()
	cfg.Nodes, cfg.Hosts, cfg.Unreachable, cfg.Formed, cfg.FaultEvery = 30, 300, 0.3, true, -1
	cfg.Workers, cfg.Loss = 256, 0
	cfg.Use("hub/paper")
	const seed = 12
	if _, violations := Run(cfg, seed); len(violations) > 0 {
		t.Errorf("seed %d: %v", seed, violations)
	}
	cfg.parts.machine = func(_ *process, cfg quorum.Config) member.Member { return forgetful{quorum.New(cfg)} }
	_, violations := Run(cfg, seed)
	lost := func(v Violation) bool { return strings.Contains(v.Message, "has handed over to nobody") }
	if !slices.ContainsFunc(violations, lost) {
		t.Errorf("seed %d: no host comes while it goes: %v", seed, violations)
	}
}

// TestBrokenHubsAreCaught breaks one part of the control unit's protocol after the other: soaking must find it.
func TestBrokenHubsAreCaught(t *testing.T) {
	for name, broken := range map[string]func(strategy.Strategy) strategy.Strategy{
		"an answer leaves before it is in the log":      func(s strategy.Strategy) strategy.Strategy { return hasteful{s} },
		"what has come is not told to the control unit": func(s strategy.Strategy) strategy.Strategy { return heedless{s} },
		"a dead node's hosts are given away at once":    func(s strategy.Strategy) strategy.Strategy { return early{s} },
		"what another owns is not handed over":          func(s strategy.Strategy) strategy.Strategy { return deaf{s} },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			cfg := small()
			cfg.Use("hub")
			cfg.Unreachable = 0.3
			cfg.parts.strategy = func(_ *process, s strategy.Strategy) strategy.Strategy { return broken(s) }
			for seed := uint64(1); seed <= 200; seed++ {
				if _, violations := Run(cfg, seed); len(violations) > 0 {
					t.Logf("seed %d: %s", seed, violations[0].Message)
					return
				}
			}
			t.Error("200 seeds have not found it")
		})
	}
}
