package sim

import (
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
)

// TestASeedIsARun runs a seed twice, to the last event.
func TestASeedIsARun(t *testing.T) {
	cfg := small()
	for seed := uint64(1); seed <= 5; seed++ {
		one, told := Story(cfg, seed, 3)
		two, again := Story(cfg, seed, 3)
		if one != two || !slices.Equal(told.Story, again.Story) {
			t.Errorf("seed %d: %+v, then %+v", seed, one, two)
		}
		if f, _ := Run(cfg, seed); f != one {
			t.Errorf("seed %d: %+v if nothing is told, else %+v", seed, f, one)
		}
		if !strings.Contains(strings.Join(told.Story, "\n"), "FAULT") {
			t.Errorf("seed %d: no fault in the story", seed)
		}
	}
	if a, _ := Run(cfg, 1); a.Requests == 0 {
		t.Error("nothing is fetched")
	} else if b, _ := Run(cfg, 2); a == b {
		t.Error("two seeds are one run")
	}
}

// TestACalmClusterFetchesEachPageOnce has neither faults nor losses.
func TestACalmClusterFetchesEachPageOnce(t *testing.T) {
	for _, formed := range []bool{false, true} {
		cfg := small()
		cfg.FaultEvery, cfg.Bandwidth, cfg.Formed = -1, 1e8, formed
		w := newWorld(cfg.withDefaults(), 7, -1, false)
		w.run()
		f := w.figures
		if len(w.violations) > 0 || f.Duplicates > f.Requests/50 || f.Requests-f.Duplicates != w.web.pages || f.Faults > 0 {
			t.Errorf("formed %v: %v, %+v; the web has %d pages", formed, w.violations, f, w.web.pages)
		}
	}
}

// TestPausesSlip lets processes stand still so often between the look at the lease and the request that some slip.
func TestPausesSlip(t *testing.T) {
	cfg := small()
	cfg.parts.leaseGap = 100 * time.Millisecond
	slips := 0
	for seed := uint64(1); seed <= 20; seed++ {
		w := newWorld(cfg.withDefaults(), seed, -1, false)
		w.faults.w = w
		var pause func()
		pause = func() {
			w.k.after(3*time.Second, pause)
			if p := anyProcess(w); p != nil && !p.paused && len(p.visits) > 0 && w.k.now < w.cfg.FaultTime {
				p.pause()
				w.k.after(w.k.uniform(20*time.Second, 40*time.Second), func() {
					if !p.ended {
						p.resume()
					}
				})
			}
		}
		w.k.after(20*time.Second, pause)
		w.run()
		slips += w.figures.Slips
		for _, v := range w.violations {
			t.Errorf("seed %d: %v", seed, v)
		}
	}
	if slips == 0 {
		t.Error("nobody slips: the excuse is not tried")
	}
	t.Logf("%d slips", slips)
}

// anyProcess draws a process; nil if none runs.
func anyProcess(w *world) *process {
	running := w.processes()
	if len(running) == 0 {
		return nil
	}
	return running[w.k.rng.IntN(len(running))]
}

// TestTheScoreSees what no machine does here: it is told of requests as they must not be.
func TestTheScoreSees(t *testing.T) {
	fresh := func() (*world, *process, *process) {
		w := newWorld(small().withDefaults(), 1, -1, false)
		return w, &process{w: w, m: w.machines[0], node: "a"}, &process{w: w, m: w.machines[1], node: "b"}
	}
	ask := func(w *world, p *process, page int, took time.Duration) {
		v := &visit{p: p, page: at(0, page), leaseChecked: w.k.now, ends: w.k.now + took}
		w.checker.addRequest(v)
	}
	cases := map[string]struct {
		f    func(w *world, a, b *process)
		want string
	}{
		"at once": {func(w *world, a, b *process) { ask(w, a, 0, time.Second); ask(w, b, 1, time.Second) },
			"under way"},
		"within the delay": {func(w *world, a, b *process) { ask(w, a, 0, 0); w.k.now++; ask(w, b, 1, 0) }, "ended 1ns ago"},
		"cut off": {func(w *world, a, _ *process) { a.m.cutSince = 1; w.k.now = time.Minute; ask(w, a, 0, 0) },
			"out of its reach"},
		"repeated": {func(w *world, a, _ *process) {
			ask(w, a, 0, 0)
			w.k.now = time.Minute
			ask(w, a, 0, 0)
			w.checker.checkRepeats()
		}, "2 times"},
	}
	for name, c := range cases {
		w, a, b := fresh()
		c.f(w, a, b)
		if len(w.violations) != 1 || !strings.Contains(w.violations[0].Message, c.want) {
			t.Errorf("%s: %v, want one with %q", name, w.violations, c.want)
		}
	}
	w, a, b := fresh()
	ask(w, a, 0, 0)
	w.k.now++
	b.pausedAt, b.resumedAt = w.k.now, w.k.now
	if ask(w, b, 1, 0); len(w.violations) > 0 || w.checker.slips != 1 {
		t.Errorf("a process that stood still: %v, %d slips", w.violations, w.checker.slips)
	}
	for page := range w.cfg.Workers {
		ask(w, a, 0, 0)
		ask(w, b, page, 0)
	}
	if len(w.violations) == 0 || !strings.Contains(w.violations[0].Message, "slips") {
		t.Errorf("more slips than workers: %v", w.violations)
	}
	w, a, _ = fresh()
	ask(w, a, 0, 0)
	w.checker.allowRepeat(at(0, 0))
	w.k.now = time.Minute
	ask(w, a, 0, 0)
	w.checker.checkRepeats()
	if len(w.violations) > 0 || w.checker.duplicates != 1 {
		t.Errorf("a page that was forgotten: %v, %d duplicates", w.violations, w.checker.duplicates)
	}
}

func TestTheKernelKeepsOrder(t *testing.T) {
	k := newKernel(1)
	var got []int
	for i := range 1000 {
		k.after(time.Duration(i*7919%100), func() { got = append(got, i*7919%100*1000+i) })
	}
	p := &process{}
	k.schedule(p, 5, func() { got = append(got, -1) })
	p.ended = true
	k.run(99, func() bool { return false })
	if len(got) != 1000 || !slices.IsSorted(got) || k.now != 99 {
		t.Errorf("%d events at %v, in order: %v", len(got), k.now, slices.IsSorted(got))
	}
}

func TestAPausedProcessCatchesUp(t *testing.T) {
	w := newWorld(small().withDefaults(), 1, -1, false)
	p := &process{w: w, tasks: tasks{lifecycle: lifecycle{k: w.k}}}
	var at []moment
	for _, d := range []time.Duration{1, 20, 30} {
		w.k.schedule(p, d, func() { at = append(at, w.k.now) })
	}
	w.k.after(10, p.pause)
	w.k.after(50, p.resume)
	w.k.run(100, w.failed)
	if !slices.Equal(at, []moment{1, 50, 50}) || !p.wasPaused(40, 60) || p.wasPaused(51, 60) || p.wasPaused(1, 9) {
		t.Errorf("%v, stood still %v", at, p.pausedAt)
	}
}

func TestCuts(t *testing.T) {
	n := &network{partitions: []*partition{{isolated: map[int]bool{1: true}, out: true}}}
	if !n.blocked(1, 2) || n.blocked(2, 1) || n.reaches(1) || !n.reaches(2) || n.blocked(2, 3) {
		t.Error("a machine that cannot send")
	}
	n.partitions[0].registryOnly = true
	if n.blocked(1, 2) || !n.blocked(1, registrySite) || n.reaches(1) {
		t.Error("a machine that cannot send to the registry")
	}
	if n.heal(n.partitions[0]); !n.reaches(1) {
		t.Error("healed")
	}
}

// TestTheRegistryComparesAndSets, and tells watchers the states of a key in their order, whatever they miss.
func TestTheRegistryComparesAndSets(t *testing.T) {
	w := newWorld(small().withDefaults(), 1, -1, false)
	key := quorum.LeasePrefix + "x"
	put := func(rev uint64, beat uint64) (uint64, error) {
		return w.reg.write(member.Write{Key: key, Value: (&quorum.Lease{Beat: beat}).Encode(), Revision: rev})
	}
	one, err := put(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := put(0, 2); !errors.Is(err, member.ErrStale) {
		t.Errorf("a second creation: %v", err)
	}
	two, err := put(one, 2)
	if err != nil || two <= one {
		t.Errorf("%d after %d, %v", two, one, err)
	}
	if _, err := w.reg.write(member.Write{Key: key, Revision: two}); err != nil {
		t.Error(err)
	}
	if _, err := put(0, 3); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
}

func TestTheWebIsReached(t *testing.T) {
	cfg := small().withDefaults()
	for seed := range uint64(20) {
		w := newWeb(cfg, seed)
		n := 0
		for h, set := range w.reachable {
			n += bits.OnesCount64(set)
			if bits.Len64(set) > w.hosts[h].pages {
				t.Errorf("seed %d: host %d of %d pages has more: %x", seed, h, w.hosts[h].pages, set)
			}
		}
		if n != w.pages || n < cfg.Hosts*cfg.Pages/2 {
			t.Errorf("seed %d: %d pages, %d by host", seed, w.pages, n)
		}
	}
}

func TestMatrix(t *testing.T) {
	file := filepath.Join(t.TempDir(), "m")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("0\t100\t0\n120\t0\t40\n80\t60\t0\n")
	m, err := ReadMatrix(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.between(registrySite, 0); got != 50*time.Millisecond {
		t.Errorf("%v from the registry to the first machine", got)
	}
	if got := m.between(registrySite, 1); got != 40*time.Millisecond {
		t.Errorf("%v where none was measured: half the mean is 40 ms", got)
	}
	if m.between(3, 4) != m.between(0, 1) {
		t.Error("machines beyond the matrix begin at its beginning")
	}
	for _, bad := range []string{"", "1 2\n3\n", "1 x\n2 3\n", "0 0\n0 0\n"} {
		write(bad)
		if _, err := ReadMatrix(file); err == nil {
			t.Errorf("%q is a matrix", bad)
		}
	}
}

// TestMeasuredMatrices reads what others have measured.
func TestMeasuredMatrices(t *testing.T) {
	dir := os.Getenv("KUMO_TEST_DATA")
	if dir == "" {
		t.Skip("KUMO_TEST_DATA is not set")
	}
	for name, places := range map[string]int{"PlanetLabData_1": 490, "SeattleData_1": 99} {
		m, err := ReadMatrix(filepath.Join(dir, "latency", name))
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for i := range places {
			sum += m.between(i, i+1)
		}
		if mean := sum / time.Duration(places); len(m.oneWay) != places || mean < 5*time.Millisecond || mean > time.Second {
			t.Errorf("%s: %d places, %v on average", name, len(m.oneWay), mean)
		}
	}
}
