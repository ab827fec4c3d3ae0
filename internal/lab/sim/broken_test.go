package sim

import (
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/driver"
	"kumo/internal/cluster/member/quorum"
	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/shard"
	"kumo/internal/lab/testmain"
)

// small is a soak of few nodes, on which much goes wrong.
func small() Config {
	cfg := Config{Nodes: 6, FaultEvery: 5 * time.Second, FaultTime: 3 * time.Minute}
	cfg.Use("shard")
	return cfg
}

// eager lets a machine believe that a chunk is journalled as soon as it is given to the holder.
type eager struct {
	member.Member
	p    *process
	told map[member.Imported]bool
}

func (e *eager) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	var first []member.Event
	for _, ev := range events {
		if t, ok := ev.(member.Imported); !ok || !e.told[t] {
			first = append(first, ev)
			if ok {
				e.told[t] = true
			}
		}
	}
	before := len(out)
	out = e.Member.Step(now, first, out)
	for _, a := range out[before:] {
		if t, ok := a.(member.Import); ok {
			e.p.addEvent(member.Imported{Transfer: t.Transfer, Seq: t.Seq})
		}
	}
	return out
}

// finishEarly lets a machine believe that what is another's has come to rest at once.
type hasty struct {
	member.Member
	p *process
}

func (h hasty) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	out = h.Member.Step(now, events, out)
	for i, a := range out {
		if d, ok := a.(member.Drain); ok {
			h.p.addEvent(member.Drained{Epoch: d.Epoch})
			out[i] = member.Drain{} // of no epoch: nobody waits for it
		}
	}
	return out
}

// hoarding keeps what it has handed over.
type hoarding struct{ member.Member }

func (h hoarding) Step(now time.Time, events []member.Event, out []member.Action) []member.Action {
	out = h.Member.Step(now, events, out)
	for i, a := range out {
		if f, ok := a.(member.Forget); ok {
			f.Moved = nil
			out[i] = f
		}
	}
	return out
}

// rash takes a host for its own as soon as the placement says so, whatever has still to come from others.
type rash struct {
	member.View
	self strategy.Node
}

func (r rash) Ours(host string) bool {
	owner, state := r.Owner(host)
	return state == strategy.Owned && owner == r.self
}

func (r rash) MayFetch(host string, now time.Time) bool { return now.Before(r.Until()) && r.Ours(host) }

// timeless does not look at the end of its lease.
type timeless struct{ member.View }

func (timeless) Until() time.Time                           { return began.Add(10000 * time.Hour) }
func (t timeless) MayFetch(host string, now time.Time) bool { return t.Ours(host) }

// careless drops links that others refuse.
type careless struct{ outbox }

func (c careless) Answered(from strategy.Node, batch uint64, _ []int, now time.Time) []member.Range {
	return c.outbox.Answered(from, batch, nil, now)
}

// restless says that it is idle while it has links for others.
type restless struct{ driver.Engine }

func (r restless) Idle() bool { return len(r.Engine.(engine).visits) == 0 }

// variants are ways to be broken.
var variants = map[string]func(*parts){
	"a chunk is acknowledged before it is journalled": func(s *parts) {
		s.machine = func(p *process, cfg quorum.Config) member.Member {
			return &eager{Member: quorum.New(cfg), p: p, told: map[member.Imported]bool{}}
		}
	},
	"hosts are handed over while they are asked": func(s *parts) {
		s.machine = func(p *process, cfg quorum.Config) member.Member { return hasty{quorum.New(cfg), p} }
	},
	"what is handed over is not forgotten": func(s *parts) {
		s.machine = func(_ *process, cfg quorum.Config) member.Member { return hoarding{quorum.New(cfg)} }
	},
	"a new owner does not wait for what others have": func(s *parts) {
		s.router = func(p *process, v member.View) member.View { return rash{v, p.node} }
	},
	"a node goes on when its lease has ended": func(s *parts) {
		s.router = func(_ *process, v member.View) member.View { return timeless{v} }
	},
	"links that are refused are dropped": func(s *parts) {
		s.outbox = func(p *process, old []outboxLink) outbox { return careless{newOutbox(p, old)} }
	},
	"a node with links for others is idle": func(s *parts) {
		s.engine = func(_ *process, e driver.Engine) driver.Engine { return restless{e} }
	},
	"nodes hash in two ways": func(s *parts) {
		s.placer = func(p *process, _ strategy.Placer) strategy.Placer {
			return shard.New(shard.Config{Slots: 12, Seed: p.instance % 2})
		}
	},
}

// TestBrokenVariantsAreCaught breaks one part after the other: soaking must find it.
func TestBrokenVariantsAreCaught(t *testing.T) {
	for name, break_ := range variants {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			cfg := small()
			break_(&cfg.parts)
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

// TestSoundNodesPass runs the same seeds with nothing broken.
func TestSoundNodesPass(t *testing.T) {
	testmain.Slow(t)
	for _, name := range Strategies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := small()
			cfg.Use(name)
			cfg.Seeds = testmain.Rounds(6, 30)
			r := Soak(t.Context(), cfg, nil)
			t.Log(r)
			for _, f := range r.Failed {
				t.Errorf("seed %d: %v\n%s", f.Seed, f.Violations, strings.Join(f.Story, "\n"))
			}
			if r.Seeds != cfg.Seeds || r.Faults == 0 || r.Duplicates == 0 {
				t.Errorf("little was tried: %v", r)
			}
		})
	}
}
