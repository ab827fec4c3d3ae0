package balance

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/central"
	"kumo/internal/cluster/strategy/central/hosttable"
	"kumo/internal/lab/testmain"
)

// slices of the site; with 500 URLs, about two URLs each
const cut = 256

// TestFiveNodes has the paper's five nodes fetch 500 URLs of one site, and compares the time with the even split and
// with the theoretical limit.
func TestFiveNodes(t *testing.T) {
	testmain.Slow(t)
	learnt := samplesOf(t, 5)
	seeds := testmain.Rounds(6, 12)
	evens := make([]run, seeds)
	for seed := range evens {
		even := newWorld(t, uint64(seed), Even, fiveNodes, nil)
		even.find("n1~1", 500, cut)
		evens[seed] = even.finish()
	}
	for _, c := range []struct {
		name    string
		given   []byte
		workers int
		share   float64 // minimum of the mean
		tail    float64 // maximum of the mean
	}{
		{"cold", nil, 8, 0.95, 0.05},
		{"learnt", learnt, 8, 0.95, 0.05},
		// Such nodes start all pages that they get, and started pages cannot be moved.
		{"cold, with many workers", nil, 64, 0.88, 0.1},
	} {
		var share, tail float64
		for seed := range uint64(seeds) {
			w := newWorld(t, seed, Exact, fiveNodes, c.given)
			w.workers = c.workers
			w.find("n1~1", 500, cut)
			r := w.finish()
			ratio := r.time.Seconds() / evens[seed].time.Seconds()
			t.Logf("%s, seed %d: %v; %.3f of the even split", c.name, seed, r, ratio)
			if ratio > 0.4 || r.share < c.share-0.06 || r.ends() > 2*c.tail {
				t.Errorf("%s, seed %d: %v; %.3f of the even split", c.name, seed, r, ratio)
			}
			share, tail = share+r.share/float64(seeds), tail+r.ends()/float64(seeds)
		}
		if t.Logf("%s: %.3f of the sum of speeds, tail %.1f %%", c.name, share, 100*tail); share < c.share || tail > c.tail {
			t.Errorf("%s: %.3f of the sum of speeds, tail %.1f %%", c.name, share, 100*tail)
		}
	}
}

// TestSlowMachines has fast pages on otherwise slow machines: reports are old when they arrive, links take long, and
// moves take longer. This is the case with saturated lines and disks.
func TestSlowMachines(t *testing.T) {
	testmain.Slow(t)
	const seeds = 10
	for _, given := range [][]byte{nil, samplesOf(t, 2)} {
		var share, tail float64
		for seed := range uint64(seeds) {
			w := newWorld(t, seed, Exact, fiveNodes, given)
			w.workers, w.speed = 4, 5
			w.lag = map[strategy.Node]time.Duration{"n2~1": time.Second, "n4~1": 2 * time.Second, "n5~1": time.Second}
			w.settle = func() time.Duration {
				return 3*time.Second + time.Duration(w.rng.Float64()*float64(2*time.Second))
			}
			w.find(strategy.Node(fmt.Sprintf("n%d~1", 1+seed%5)), 500, 1000)
			r := w.finish()
			t.Logf("seed %d: %v; %d hosts moved", seed, r, w.moved)
			share, tail = share+r.share/seeds, tail+r.ends()/seeds
			if r.share < 0.6 {
				t.Errorf("seed %d: %v; %d hosts moved", seed, r, w.moved)
			}
		}
		if t.Logf("%.3f of the sum of speeds, tail %.1f %%", share, 100*tail); share < 0.78 || tail > 0.12 {
			t.Errorf("%.3f of the sum of speeds, tail %.1f %%", share, 100*tail)
		}
	}
}

// TestLinksThatAreLeftOut has few URLs on slow machines, and pages with links that a rule excludes: no node waits for
// URLs that will not be fetched.
func TestLinksThatAreLeftOut(t *testing.T) {
	const seeds = 10
	times := map[int]float64{}
	for _, beyond := range []int{0, 2} {
		for seed := range uint64(seeds) {
			w := newWorld(t, seed, Exact, fiveNodes, nil)
			w.workers, w.speed, w.beyond = 4, 5, beyond
			w.settle = func() time.Duration {
				return 3*time.Second + time.Duration(w.rng.Float64()*float64(2*time.Second))
			}
			w.find(strategy.Node(fmt.Sprintf("n%d~1", 1+seed%5)), 150, 1000)
			r := w.finish()
			t.Logf("%d such links a page, seed %d: %v; %d hosts moved", beyond, seed, r, w.moved)
			times[beyond] += r.time.Seconds() / seeds
		}
	}
	if t.Logf("%.1f s, without such links %.1f s", times[2], times[0]); times[2] > 1.1*times[0] {
		t.Errorf("it takes %.1f s, without such links %.1f s", times[2], times[0])
	}
}

// TestNothingToFetch: a host with nothing to fetch is assigned to its finder at once.
func TestNothingToFetch(t *testing.T) {
	w := newWorld(t, 1, Exact, fiveNodes, nil)
	w.nodes["n3~1"].links["far.example"] = []string{leftOut}
	w.pass(time.Second)
	if got := w.Owners("far.example"); !slices.Equal(got, []strategy.Node{"n3~1"}) || w.nodes["n3~1"].taken > 0 {
		t.Errorf("it is %q's", got)
	}
	for _, n := range w.living() {
		if q := w.Nodes[n].Status().Quota; q != nil && q.Left > 0 {
			t.Errorf("%s has %d URLs to fetch", n, q.Left)
		}
	}
}

// TestPaper uses the paper's method, which splits once and moves nothing. Without samples it is the even split. Samples
// of all numbers of URLs that a node may get make it far better: the network cannot extrapolate.
func TestPaper(t *testing.T) {
	var all []model.Sample
	for urls := 10; urls <= 250; urls += 20 {
		for i, m := range fiveNodes {
			all = append(all, model.Sample{Node: fmt.Sprintf("n%d", i+1), Machine: model.Machine(m), URLs: urls,
				Seconds: float64(urls) * pageTime(m)})
		}
	}
	learnt, err := EncodeSamples(all)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(testmain.Rounds(2, 5)) {
		runs := map[string]run{}
		for name, given := range map[string][]byte{"cold": nil, "learnt": learnt} {
			w := newWorld(t, seed, Paper, fiveNodes, given)
			w.find("n1~1", 500, cut)
			runs[name] = w.finish()
			if t.Logf("seed %d, %s: %v", seed, name, runs[name]); w.moved > 0 {
				t.Errorf("seed %d, %s: %d hosts have moved", seed, name, w.moved)
			}
			for _, n := range w.living() {
				got := w.Nodes[n].Status().Quota
				if got == nil || got.Basis == model.Network.String() != (given != nil) || given == nil && got.Given > 105 {
					t.Errorf("seed %d, %s: %s has %+v", seed, name, n, got)
				}
			}
		}
		if runs["learnt"].time > runs["cold"].time*6/10 {
			t.Errorf("seed %d: with samples it takes %v, without %v", seed, runs["learnt"].time, runs["cold"].time)
		}
	}
}

// TestANodeBecomesSlow makes the fastest node four times slower midway: its work is moved to other nodes.
func TestANodeBecomesSlow(t *testing.T) {
	for seed := range uint64(5) {
		w := newWorld(t, seed, Exact, fiveNodes, nil)
		w.find("n1~1", 500, cut)
		fast := w.nodes["n1~1"]
		pace := 0.0
		for _, f := range w.nodes {
			pace += 1 / pageTime(f.machine)
		}
		w.pass(50 * time.Second)
		fast.slow = 4
		r := w.finish()
		best := 50 + (500-50*pace)/(pace-0.75/pageTime(fast.machine))
		t.Logf("seed %d: %v; %.3f of what is possible; %d hosts moved", seed, r, best/r.time.Seconds(), w.moved)
		if best/r.time.Seconds() < 0.9 || r.ends() > 0.1 {
			t.Errorf("seed %d: %v; %.3f of what is possible", seed, r, best/r.time.Seconds())
		}
	}
}

// TestANodeDies kills a node, or the master: nothing is lost, and the others share its work.
func TestANodeDies(t *testing.T) {
	for _, dead := range []strategy.Node{"n3~1", "n1~1"} {
		for seed := range uint64(testmain.Rounds(2, 5)) {
			w := newWorld(t, seed, Exact, fiveNodes, nil)
			w.find("n2~1", 500, cut)
			leads := w.Leader() == dead
			if leads != (dead == "n1~1") {
				t.Fatalf("%s leads", w.Leader())
			}
			w.pass(40 * time.Second)
			w.kill(dead)
			r := w.finish()
			all := 0.0
			for _, f := range w.nodes {
				all += 1 / pageTime(f.machine)
			}
			best := 40 + (500-40*all)/(all-1/pageTime(w.nodes[dead].machine))
			t.Logf("seed %d: %s dies, leading %v: %v; %.3f of what is possible", seed, dead, leads, r, best/r.time.Seconds())
			if best/r.time.Seconds() < 0.85 || r.ends() > 0.1 {
				t.Errorf("seed %d: %s dies, leading %v: %v; %.3f of what is possible", seed, dead, leads, r, best/r.time.Seconds())
			}
		}
	}
}

// TestANewMasterHasLearnt kills the master: the next one has its samples and reports the basis of its predictions.
func TestANewMasterHasLearnt(t *testing.T) {
	w := newWorld(t, 1, Exact, fiveNodes, samplesOf(t, 3))
	before := w.samples()
	if len(before) < 30 {
		t.Fatalf("%d samples were given", len(before))
	}
	w.find("n2~1", 500, cut)
	w.pass(60 * time.Second)
	learnt := w.samples()
	if len(learnt) <= len(before) || !slices.Equal(learnt[:len(before)], before) {
		t.Fatalf("after a minute there are %d samples, %d were given", len(learnt), len(before))
	}
	w.kill("n1~1")
	w.pass(15 * time.Second)
	if w.Leader() == "" || !slices.Equal(w.samples()[:len(learnt)], learnt) {
		t.Fatalf("%q leads, with %d samples; there were %d", w.Leader(), len(w.samples()), len(learnt))
	}
	for _, n := range w.living() {
		q := w.Nodes[n].Status().Quota
		if q == nil || q.Basis == model.Nothing.String() || q.Left+q.Done == 0 {
			t.Errorf("%s knows of %+v", n, q)
		}
	}
	w.finish()
}

func (w *world) samples() []model.Sample {
	all, err := ReadLog(hosttable.Key{}, w.Read, func(central.Host) bool { return true })
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// TestQuota: the quota in a node's status is correct.
func TestQuota(t *testing.T) {
	w := newWorld(t, 1, Exact, fiveNodes, nil)
	w.find("n1~1", 500, cut)
	w.pass(90 * time.Second)
	for _, n := range w.living() {
		f, q := w.nodes[n], w.Nodes[n].Status().Quota
		if q == nil {
			t.Fatalf("%s knows of no quota", n)
		}
		real := float64(q.Left) * pageTime(f.machine)
		if math.Abs(float64(q.Done-f.pages)) > 10 || q.Given < q.Done || q.Error < 0 && n == "n1~1" || q.Error > 1 ||
			q.Predicted.Seconds() > 1.5*real+5 || q.Predicted.Seconds() < real/1.5-5 {
			t.Errorf("%s, which has %d pages and should take %.0f s for the rest: %+v", n, f.pages, real, q)
		}
	}
}

// TestSplittersAtOnce: even and hash assign hosts at the first request.
func TestSplittersAtOnce(t *testing.T) {
	for _, splitter := range []Splitter{Even, Hash} {
		w := newWorld(t, 1, splitter, fiveNodes, nil)
		w.find("n1~1", 500, cut)
		w.pass(5 * time.Second)
		has, sum := map[strategy.Node]int{}, 0
		for _, n := range w.living() {
			f := w.nodes[n]
			has[n] = int(f.pages) + len(f.under)
			for _, urls := range f.queues {
				has[n] += len(urls)
			}
			sum += has[n]
		}
		spread := 4
		if splitter == Hash {
			spread = 60
		}
		for n, urls := range has {
			if sum != 500 || urls < 100-spread || urls > 100+spread {
				t.Errorf("%v: %s has %d of %d URLs", splitter, n, urls, sum)
			}
		}
		if r := w.finish(); w.moved > 0 {
			t.Errorf("%v: %d hosts have moved; %v", splitter, w.moved, r)
		}
	}
}

// TestThePoolIsBounded: hosts that exceed the pool are assigned at once, and the others wait.
func TestThePoolIsBounded(t *testing.T) {
	w := newWorld(t, 1, Exact, fiveNodes, nil)
	var hosts []string
	for i := range 22_000 {
		hosts = append(hosts, fmt.Sprintf("h%d.example", i))
	}
	w.RequestOwners("n1~1", hosts...)
	w.Run(80 * time.Millisecond) // before the first split
	owned := 0
	for _, n := range w.living() {
		owned += w.Nodes[n].Status().Owned
	}
	if owned < 2000 || owned > 5000 {
		t.Errorf("%d of 22000 hosts are owned at once", owned)
	}
}

// TestLargeHosts: a host larger than any share goes to the node that finishes it first; the other nodes get the rest.
func TestLargeHosts(t *testing.T) {
	w := newWorld(t, 1, Exact, fiveNodes, nil)
	w.find("n2~1", 200, 1)
	w.find("n2~1", 100, cut)
	w.pass(time.Second)
	r := w.finish()
	if alone := 200 * pageTime(fiveNodes[0]); r.time.Seconds() > 1.7*alone {
		t.Errorf("it takes %v; the fastest node takes %.0f s for the large host", r, alone)
	}
}
