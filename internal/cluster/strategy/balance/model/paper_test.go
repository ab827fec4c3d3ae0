package model

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// learnPaper returns the paper's model of the five nodes after a number of samples.
func learnPaper(t *testing.T, w world, c Config, count int) *Model {
	t.Helper()
	c.Paper = true
	m, rng := New(c), rand.New(rand.NewPCG(c.Seed, 1))
	for i := range count {
		add(t, m, w.measure(fmt.Sprint("n", i%5), fiveNodes[i%5], rng))
	}
	m.Train(200)
	return m
}

// TestPaperModel: the paper's model learns the paper's nodes, and its settings count.
func TestPaperModel(t *testing.T) {
	for seed := range uint64(1) {
		m := learnPaper(t, slow, Config{Seed: seed}, 100)
		if off := slow.errorOf(m); off > 0.2 {
			t.Errorf("seed %d: an error of %.3f", seed, off)
		} else {
			t.Logf("seed %d: an error of %.3f, %+v", seed, off, m.Report())
		}
		early := learnPaper(t, slow, Config{Seed: seed, Threshold: 0.5}, 100)
		if r := early.Report(); r.Epochs != 1 {
			t.Errorf("seed %d: a threshold of 0.5 takes %d epochs", seed, r.Epochs)
		}
		slower := learnPaper(t, slow, Config{Seed: seed, Rate: 1e-6}, 100)
		if a, b := m.Report().Loss, slower.Report().Loss; b < 2*a {
			t.Errorf("seed %d: a loss of %v, with a tiny learning rate %v", seed, a, b)
		}
		if got := len(learnPaper(t, slow, Config{Seed: seed, Hidden: 6}, 30).net.weights); got != 6*stride+1 {
			t.Errorf("seed %d: 6 hidden units have %d weights", seed, got)
		}
	}
}

// TestPaperModelWithoutNetwork: with few samples all nodes have the same time, and a diverging training is no crash.
func TestPaperModelWithoutNetwork(t *testing.T) {
	f, basis := learnPaper(t, slow, Config{}, 10).Time("n0", fiveNodes[0])
	if basis != Nothing || f(7) != 7 || f(0) != 0 {
		t.Errorf("7 URLs take %v s by %v", f(7), basis)
	}
	f, basis = learnPaper(t, slow, Config{Rate: 1}, 100).Time("n0", fiveNodes[0])
	if s := f(100); basis != Network || !(s >= leastSeconds) {
		t.Errorf("100 URLs take %v s by %v", s, basis)
	}
}
