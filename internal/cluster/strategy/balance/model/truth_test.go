package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// fiveNodes are the nodes in the paper's table.
var fiveNodes = []Machine{
	{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 18, DiskMbps: 18},
	{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 5, DiskMbps: 18},
	{Cores: 4, GHz: 2.4, MemoryGB: 1, NetworkMbps: 12, DiskMbps: 3},
	{Cores: 4, GHz: 2.6, MemoryGB: 3, NetworkMbps: 2, DiskMbps: 1.5},
	{Cores: 1, GHz: 2.4, MemoryGB: 3, NetworkMbps: 12, DiskMbps: 1},
}

// A world simulates running times: a start-up time in seconds, and a time per page for the slowest of the processors
// (faster with more memory), the network and the disk.
type world float64

const (
	quick world = 4
	// slow gives the five nodes about the paper's figures: 500 URLs are split into 164, 70, 120, 36 and 110, and take
	// 134 s, or 233 s with the even split.
	slow world = 72
)

func (w world) seconds(m Machine, n int) float64 {
	processors := 0.1 + 0.3*2.4/m.GHz/math.Pow(m.Cores, 0.3)*(1+0.9/m.MemoryGB)
	return float64(w)*(1+0.1/m.Cores) + float64(n)*max(processors, 3.6/m.NetworkMbps, 0.5/m.DiskMbps)
}

// noise is the standard deviation of the logarithm of a sample's seconds.
const noise = 0.1

// measure returns a sample of a node: 1 to 200 URLs.
func (w world) measure(node string, m Machine, rng *rand.Rand) Sample {
	n := 1 + rng.IntN(200)
	return Sample{Node: node, Machine: m, URLs: n, Seconds: w.seconds(m, n) * math.Exp(noise*rng.NormFloat64())}
}

// learn returns a model of the five nodes after a number of samples.
func (w world) learn(t testing.TB, count int, seed uint64) *Model {
	m, rng := New(Config{Seed: seed}), rand.New(rand.NewPCG(seed, 1))
	for i := range count {
		add(t, m, w.measure(fmt.Sprint("n", i%5), fiveNodes[i%5], rng))
	}
	m.Train(200)
	return m
}

// errorOf returns a model's error for the five nodes, without noise: a root mean square of logarithms.
func (w world) errorOf(m *Model) float64 {
	var sum float64
	n := 0
	for node, machine := range fiveNodes {
		time, _ := m.Time(fmt.Sprint("n", node), machine)
		for urls := 5; urls <= 200; urls += 5 {
			sum += square(math.Log(time(urls) / w.seconds(machine, urls)))
			n++
		}
	}
	return math.Sqrt(sum / float64(n))
}

// anyMachine returns a machine with 1 to 8 cores, 2 to 4 GHz, 0.5 to 10 GB, 2 to 40 Mb/s of network and 1 to 20 of
// disk.
func anyMachine(rng *rand.Rand) Machine {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, rng.Float64()) }
	return Machine{
		Cores: float64(1 + rng.IntN(8)), GHz: between(2, 4), MemoryGB: between(0.5, 10),
		NetworkMbps: between(2, 40), DiskMbps: between(1, 20),
	}
}
