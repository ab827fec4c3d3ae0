package sim

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/lab/testmain"
)

// spreading is 200 hosts, whose roots are all seeds, which all nodes reach alike.
func spreading(nodes int) Config {
	cfg := LAN()
	cfg.Use("hub")
	cfg.Nodes, cfg.Hosts, cfg.Roots, cfg.Pages, cfg.EqualReach, cfg.FaultEvery = nodes, 200, 200, 32, true, -1
	cfg.FaultTime, cfg.Chunk = time.Minute, 100
	return cfg
}

// shares are how many hosts the running nodes hold, and the greatest as a share of the mean.
func (w *world) shares() (hosts []int, greatest float64) {
	sum := 0
	for _, p := range w.processes() {
		hosts = append(hosts, len(p.state.hosts))
		sum += len(p.state.hosts)
	}
	for _, n := range hosts {
		greatest = max(greatest, float64(n*len(hosts))/float64(sum))
	}
	return hosts, greatest
}

// TestSeedsAreSpread has nodes come at different times, as they do when a crawl is started on a loaded machine: half a
// minute after the start of the last no node has more than 1.3 times its share, but for few runs: chance brings one in
// a hundred to somewhat more. So what is wrong is a case that does so more often than not, or many cases that do.
func TestSeedsAreSpread(t *testing.T) {
	testmain.Slow(t)
	var uneven, lopsided atomic.Int64
	t.Run("cases", func(t *testing.T) { spreadAll(t, &uneven, &lopsided) })
	if n := int(uneven.Load()); n > spreadSeeds() {
		t.Errorf("%d runs are uneven", n)
	}
	if n := lopsided.Load(); n > 1 { // of some 900 runs one was
		t.Errorf("in %d runs one node has more than twice its share", n)
	}
}

// spreadSeeds is how many runs each case of TestSeedsAreSpread has.
func spreadSeeds() int { return testmain.Rounds(2, 5) }

func spreadAll(t *testing.T, all, lopsided *atomic.Int64) {
	at := func(all ...time.Duration) []time.Duration { return all }
	for name, starts := range map[string][]time.Duration{
		"at once":                 at(0, 0, 0),
		"tenths of a second":      at(0, 300*time.Millisecond, 700*time.Millisecond),
		"one comes a second late": at(0, 0, 0, time.Second),
		"two come late":           at(0, 4*time.Second, 5*time.Second),
		"one comes very late":     at(0, 0, 20*time.Second),
		"one after the other":     at(0, 20*time.Second, 45*time.Second),
		"each when hosts move":    at(0, 12*time.Second, 21*time.Second, 30*time.Second),
		"ten":                     at(0, 0, 0, 0, 0, time.Second, time.Second, time.Second, 2*time.Second, 3*time.Second),
	} {
		for _, slow := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, slow %v", name, slow), func(t *testing.T) {
				t.Parallel()
				seeds, uneven := spreadSeeds(), 0
				for seed := range seeds {
					greatest := spread(t, uint64(seed)+1, starts, slow)
					if greatest > 1.3 {
						uneven++
						all.Add(1)
					}
					if greatest > 2 {
						lopsided.Add(1)
					}
				}
				if uneven > seeds/2 {
					t.Errorf("%d of %d runs are uneven", uneven, seeds)
				}
			})
		}
	}
}

func spread(t *testing.T, seed uint64, starts []time.Duration, slow bool) (greatest float64) {
	w := newWorld(spreading(len(starts)).withDefaults(), seed, -1, false)
	w.faults = faults{w: w}
	last := time.Duration(0)
	for i, m := range w.machines {
		last = max(last, starts[i])
		w.k.after(starts[i], func() { w.begin(m) })
	}
	if slow { // the first node stands still again and again
		for at := 500 * time.Millisecond; at < 6*time.Second; at += 2 * time.Second {
			w.k.after(at, func() { w.machines[0].proc.pause() })
			w.k.after(at+1500*time.Millisecond, func() { w.machines[0].proc.resume() })
		}
	}
	for i := range w.web.seeds {
		w.addSeed(at(int32(i), 0))
	}
	w.k.run(last+30*time.Second, w.failed)
	hosts, greatest := w.shares()
	moved := w.figures.Moved
	w.k.run(w.k.now+10*time.Minute, w.failed)
	if w.judge(true); w.failed() {
		t.Errorf("seed %d: %v", seed, w.violations[0])
	}
	t.Logf("seed %d: %v: %.2f, moved %d, %d in the end", seed, hosts, greatest, moved, w.figures.Moved)
	w.stop()
	return greatest
}

// TestMovesForLoad has much to move, and as many faults as there are elsewhere.
func TestMovesForLoad(t *testing.T) {
	cfg := spreading(8)
	cfg.Unreachable, cfg.EqualReach, cfg.FaultEvery, cfg.FaultTime, cfg.Chunk = 0.1, false, 0, 4*time.Minute, 10
	cfg.Seeds = testmain.Rounds(5, 20)
	r := Soak(t.Context(), cfg, nil)
	t.Log(r)
	for _, f := range r.Failed {
		t.Errorf("seed %d: %v", f.Seed, f.Violations[:min(len(f.Violations), 5)])
	}
	if r.Moved < 20*r.Seeds {
		t.Errorf("only %d hosts have moved in %d runs", r.Moved, r.Seeds)
	}
}

// TestTheControlUnitDiesInAMove kills one of those who have a part in a move, just when the first hosts of it are given
// away.
func TestTheControlUnitDiesInAMove(t *testing.T) {
	victims := map[string]func(w *world, h central.Host) *machine{
		"the control unit": func(w *world, _ central.Host) *machine {
			for _, p := range w.processes() {
				if p.strategy.(strategy.StatusReporter).Status().Leads {
					return p.m
				}
			}
			return nil
		},
		"the giver": func(w *world, _ central.Host) *machine { // it has most
			return slices.MaxFunc(w.processes(), func(a, b *process) int { return len(a.state.hosts) - len(b.state.hosts) }).m
		},
		"the taker": func(w *world, h central.Host) *machine { return w.machines[w.machineOf[h.Owner]] },
	}
	for name, victim := range victims {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= uint64(testmain.Rounds(3, 10)); seed++ {
				killed := dieInAMove(t, seed, victim)
				if !killed {
					t.Errorf("seed %d: nothing has moved", seed)
				}
			}
		})
	}
}

func dieInAMove(t *testing.T, seed uint64, victim func(*world, central.Host) *machine) (killed bool) {
	cfg := spreading(4)
	cfg.Pages = 12
	w := newWorld(cfg.withDefaults(), seed, -1, false)
	w.moves.onMove = func(h central.Host) {
		if killed {
			return
		}
		killed = true
		w.k.after(w.k.uniform(0, 400*time.Millisecond), func() {
			if m := victim(w, h); m != nil && m.proc != nil {
				m.proc.end()
				w.k.after(w.k.uniform(300*time.Millisecond, 40*time.Second), func() { w.begin(m) })
			}
		})
	}
	w.faults = faults{w: w, stopped: true}
	for i, m := range w.machines { // two come when the others have all hosts
		w.k.after(time.Duration(i/2)*15*time.Second, func() { w.begin(m) })
	}
	for i := range w.web.seeds {
		w.addSeed(at(int32(i), 0))
	}
	w.k.run(2*time.Minute, w.failed)
	idle := forever
	for !w.failed() && !w.atRest(&idle) {
		w.k.run(w.k.now+time.Second, w.failed)
	}
	w.stop()
	w.checker.checkRepeats()
	for _, v := range w.violations {
		t.Errorf("seed %d: %v", seed, v)
	}
	return killed
}
