package model

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"kumo/internal/cluster/strategy/balance/split"
)

// TestLearning tests the whole process: five nodes like the paper's report how long their work took, with noise, and
// 500 URLs are split by the model. For several numbers of samples it logs the error that the model reports for
// held-back samples, its error against the truth without noise, and the duration of the run with its split, relative to
// the best split.
func TestLearning(t *testing.T) {
	for _, c := range []struct {
		name string
		world
		mostError, mostRun [4]float64
	}{
		{"a quick start", quick, [4]float64{0.4, 0.25, 0.12, 0.07}, [4]float64{1.3, 1.2, 1.1, 1.07}},
		{"a slow start", slow, [4]float64{1, 0.25, 0.12, 0.07}, [4]float64{1.5, 1.2, 1.1, 1.07}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i, samples := range []int{10, 30, 100, 300} {
				if off, run := c.splitAll(t, samples); off > c.mostError[i] || run > c.mostRun[i] {
					t.Errorf("an error of %.3f, a run of %.3f", off, run)
				}
			}
		})
	}
}

// splitAll returns means over some seeds: the error, and the duration of the run with the model's split, relative to
// the shortest.
func (w world) splitAll(t *testing.T, samples int) (off, run float64) {
	const total, seeds = 500, 20
	var truths []split.Time
	for _, machine := range fiveNodes {
		truths = append(truths, func(n int) float64 { return w.seconds(machine, n) })
	}
	best := split.Makespan(truths, split.Exact(truths, total))
	if samples == 10 {
		t.Logf("the shortest run, split into %v, takes %.0f s; the even split %.2f times as long",
			split.Exact(truths, total), best, split.Makespan(truths, split.Even(5, total))/best)
	}
	var held, worst float64
	bases := map[Basis]int{}
	for seed := range uint64(seeds) {
		m := w.learn(t, samples, seed)
		held += m.Report().Error / seeds
		off += w.errorOf(m) / seeds
		var times []split.Time
		for i, machine := range fiveNodes {
			time, basis := m.Time(fmt.Sprint("n", i), machine)
			bases[basis]++
			times = append(times, time)
		}
		ratio := split.Makespan(truths, split.Exact(times, total)) / best
		run, worst = run+ratio/seeds, max(worst, ratio)
	}
	t.Logf("%3d samples: error %.3f of those held back, %.3f of the truth; run %.3f times the shortest, worst %.3f; %v",
		samples, held, off, run, worst, bases)
	return off, run
}

// TestUnseenNode: samples of other machines help to predict a new node.
func TestUnseenNode(t *testing.T) {
	var ratio, mean float64
	const seeds = 10
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 8))
		m := New(Config{Seed: seed})
		for i := range 300 {
			add(t, m, quick.measure(fmt.Sprint("n", i%30), anyMachine(rand.New(rand.NewPCG(seed, uint64(i%30)))), rng))
		}
		m.Train(200)
		var truths, times, equal []split.Time
		for i := range 5 {
			machine := anyMachine(rand.New(rand.NewPCG(seed, uint64(100+i))))
			time, basis := m.Time(fmt.Sprint("new", i), machine)
			if basis != Network {
				t.Fatalf("seed %d: by %v", seed, basis)
			}
			truths = append(truths, func(n int) float64 { return quick.seconds(machine, n) })
			times = append(times, time)
			equal = append(equal, atPace(1))
		}
		best := split.Makespan(truths, split.Exact(truths, 500))
		ratio += split.Makespan(truths, split.Exact(times, 500)) / best / seeds
		mean += split.Makespan(truths, split.Exact(equal, 500)) / best / seeds
	}
	t.Logf("five new nodes: the run takes %.2f times the shortest, without figures of machines %.2f times", ratio, mean)
	if ratio > 1.5 {
		t.Error("above 1.5")
	}
}
