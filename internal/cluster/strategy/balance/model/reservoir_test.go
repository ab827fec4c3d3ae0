package model

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestKept: memory is bounded, the newest sample is kept, and a node with few samples keeps them, in all cases.
func TestKept(t *testing.T) {
	const limit = 200
	for seed := range uint64(5) {
		m, rng := New(Config{MaxSamples: limit, Seed: seed}), rand.New(rand.NewPCG(seed, 0))
		for i := range 2000 {
			node := "often"
			switch {
			case i%100 == 0:
				node = "seldom"
			case i%7 == 0:
				node = fmt.Sprint("n", rng.IntN(8))
			}
			s := quick.measure(node, fiveNodes[0], rng)
			add(t, m, s)
			if i%19 > 0 {
				continue
			}
			kept := m.Samples()
			if len(kept) > limit {
				t.Fatalf("seed %d: %d samples are kept", seed, len(kept))
			}
			if kept[len(kept)-1] != s {
				t.Fatalf("seed %d: the newest sample is not kept", seed)
			}
		}
		of := map[string]int{}
		for _, s := range m.Samples() {
			of[s.Node]++
		}
		if len(of) != 10 || of["seldom"] != 20 || of["often"] != 20 {
			t.Errorf("seed %d: kept by node: %v", seed, of)
		}
	}
}

// TestTooManyNodes: the nodes that were silent for longest are dropped.
func TestTooManyNodes(t *testing.T) {
	m, rng := New(Config{MaxSamples: 80, Seed: 1}), rand.New(rand.NewPCG(1, 0))
	for node := range 30 {
		for range 9 {
			add(t, m, quick.measure(fmt.Sprint("n", node), fiveNodes[node%5], rng))
		}
		add(t, m, quick.measure("n0", fiveNodes[0], rng))
	}
	of := map[string]int{}
	for _, s := range m.Samples() {
		of[s.Node]++
	}
	if len(of) != 10 || of["n0"] == 0 || of["n29"] == 0 || of["n20"] != 0 || of["n21"] == 0 {
		t.Errorf("kept by node: %v", of)
	}
	if _, basis := seconds(m, "n1", fiveNodes[1], 1); basis == Pace {
		t.Error("a node that was forgotten still has a pace")
	}
}
