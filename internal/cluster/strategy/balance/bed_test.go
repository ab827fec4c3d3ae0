package balance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"kumo/internal/cluster/strategy"
	"kumo/internal/lab/testmain"
)

// bedRates are the speeds of the nodes of the test bed TestBalance (package main) in pages per second, each measured
// alone. The slowest takes a second a page: 5 % of the shortest run.
var bedRates = []float64{9.4, 2.58, 5.65, 0.99, 3.73}

// newBed returns a world like the test bed: two workers a node, and messages that wait behind pages in the lines.
func newBed(t *testing.T, seed uint64, splitter Splitter, given []byte) *world {
	w := newWorld(t, seed, splitter, fiveNodes, given)
	w.workers = 2
	w.lag = map[strategy.Node]time.Duration{"n1~1": 50 * time.Millisecond, "n2~1": 200 * time.Millisecond,
		"n3~1": 50 * time.Millisecond, "n4~1": 400 * time.Millisecond, "n5~1": 100 * time.Millisecond}
	for i, rate := range bedRates {
		w.nodes[strategy.Node(fmt.Sprintf("n%d~1", i+1))].slow = 1 / rate / pageTime(fiveNodes[i])
	}
	return w
}

// findSpread gives each node an equal part of the links, as when seeds are added, while the crawl is paused.
func (w *world) findSpread(urls, slices int) {
	nodes := w.living()
	w.paused = true
	defer func() { w.pass(5 * time.Second); w.paused, w.began = false, w.Now }()
	for _, n := range nodes {
		w.find(n, urls/len(nodes), slices)
	}
}

// bedSamples returns the samples of some runs on the test bed.
func bedSamples(t *testing.T, runs int) []byte {
	return collectSamples(t, runs, func(seed uint64) *world {
		w := newBed(t, seed, Exact, nil)
		w.findSpread(500, 1000)
		return w
	})
}

// TestBed runs the test bed of TestBalance in virtual time, where nothing else disturbs it.
func TestBed(t *testing.T) {
	testmain.Slow(t)
	seeds := testmain.Rounds(20, 60)
	for _, c := range []struct {
		name  string
		given []byte
	}{
		{"cold", nil},
		{"learnt", bedSamples(t, 3)},
	} {
		var shares, tails []float64
		good := 0
		for seed := range uint64(seeds) {
			w := newBed(t, seed, Exact, c.given)
			w.findSpread(500, 1000)
			r := w.finish()
			t.Logf("%s, seed %d: %v; %d hosts moved; %s", c.name, seed, r, w.moved, w.endings())
			shares, tails = append(shares, r.share), append(tails, r.ends())
			if r.share >= 0.95 && r.ends() <= 0.05 {
				good++
			}
		}
		slices.Sort(shares)
		slices.Sort(tails)
		at := func(all []float64, p float64) float64 { return all[int(p*float64(len(all)-1))] }
		t.Logf("%s: share %.3f (%.3f to %.3f), tail %.1f %% (%.1f to %.1f), both in %d of %d", c.name, at(shares, 0.5),
			at(shares, 0.1), at(shares, 0.9), 100*at(tails, 0.5), 100*at(tails, 0.1), 100*at(tails, 0.9), good, seeds)
		if at(shares, 0.5) < 0.965 || at(tails, 0.5) > 0.065 {
			t.Errorf("%s: the median run has %.3f of the sum of speeds and a tail of %.1f %%", c.name, at(shares, 0.5),
				100*at(tails, 0.5))
		}
	}
}

// endings returns when each node finished before the last one, in seconds.
func (w *world) endings() string {
	var last time.Time
	for _, n := range w.living() {
		if f := w.nodes[n]; f.end.After(last) {
			last = f.end
		}
	}
	var s []string
	for _, n := range w.living() {
		s = append(s, fmt.Sprintf("%.1f", last.Sub(w.nodes[n].end).Seconds()))
	}
	return fmt.Sprint(s)
}
