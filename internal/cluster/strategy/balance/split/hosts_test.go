package split_test

import (
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy/balance/split"
)

func makespan(nodes []split.Time, sizes, owners []int) float64 {
	return split.Makespan(nodes, split.Counts(len(nodes), sizes, owners))
}

// anySizes returns the sizes of few large and many small hosts.
func anySizes(rng *rand.Rand, count int) []int {
	sizes := make([]int, count)
	for k := range sizes {
		sizes[k] = int(min(1/math.Pow(1-rng.Float64(), 1.2), 200))
	}
	return sizes
}

// shortest returns the least makespan of all splits of whole hosts.
func shortest(nodes []split.Time, sizes []int) float64 {
	least, owners := math.Inf(1), make([]int, len(sizes))
	for {
		least = min(least, makespan(nodes, sizes, owners))
		k := 0
		for ; k < len(owners); k++ {
			if owners[k]++; owners[k] < len(nodes) {
				break
			}
			owners[k] = 0
		}
		if k == len(owners) {
			return least
		}
	}
}

// TestHosts: if nodes differ only in speed, the split is within the proven bound; otherwise it is not below LowerBound.
// The result is deterministic. The ratios are logged.
func TestHosts(t *testing.T) {
	var speeds, others []float64
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 0))
		sizes := anySizes(rng, rng.IntN(8))
		nodes := anyNodes(rng, 3, max(1, sum(sizes)))
		speed := seed%2 == 0
		if speed {
			for i := range nodes {
				pace := math.Pow(10, rng.Float64())
				nodes[i] = func(n int) float64 { return pace * float64(n) }
			}
		}
		owners := split.Hosts(nodes, sizes)
		if len(owners) != len(sizes) || !slices.Equal(owners, split.Hosts(nodes, sizes)) {
			t.Fatalf("seed %d: hosts of %v have owners %v", seed, sizes, owners)
		}
		time, least, below := makespan(nodes, sizes, owners), shortest(nodes, sizes), split.LowerBound(nodes, sizes)
		if time < least || below > least {
			t.Fatalf("seed %d: %v of %v take %v s; the shortest takes %v s, the lower bound is %v s",
				seed, owners, sizes, time, least, below)
		}
		switch {
		case least == 0 || math.IsInf(least, 1):
		case speed:
			if time > 1.58*least {
				t.Errorf("seed %d: %v s, not %v s", seed, time, least)
			}
			speeds = append(speeds, time/least)
		default:
			others = append(others, time/least)
		}
	}
	t.Logf("nodes that differ in speed: %s", spread(speeds))
	t.Logf("other nodes: %s", spread(others))
	if mean(speeds) > 1.01 || mean(others) > 1.05 {
		t.Error("mean above 1.01 or 1.05")
	}
}

// TestManyHosts: with many hosts, whole hosts take hardly longer than single units.
func TestManyHosts(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 1))
		nodes, sizes := realNodes(rng, 5+rng.IntN(50)), anySizes(rng, 20_000)
		time, below := makespan(nodes, sizes, split.Hosts(nodes, sizes)), split.LowerBound(nodes, sizes)
		if time > 1.01*below {
			t.Errorf("seed %d: %v s, at least %v s", seed, time, below)
		}
		var names []string
		for k := range sizes {
			names = append(names, fmt.Sprint("host", k, ".example"))
		}
		if hashed := makespan(nodes, sizes, hashHosts(len(nodes), names)); hashed < 1.2*time {
			t.Errorf("seed %d: by hash %v s, by time %v s", seed, hashed, time)
		}
	}
}

// hashHosts assigns each host by a hash of its name.
func hashHosts(nodes int, names []string) (owners []int) {
	owners = make([]int, len(names))
	for k, name := range names {
		h := fnv.New64a()
		_, _ = io.WriteString(h, name)
		owners[k] = int(h.Sum64() % uint64(nodes))
	}
	return owners
}

func BenchmarkHosts(b *testing.B) {
	for _, m := range []int{5, 100, 1000} {
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			rng := rand.New(rand.NewPCG(1, 1))
			nodes, sizes := realNodes(rng, m), anySizes(rng, 100*m)
			below := split.LowerBound(nodes, sizes)
			var owners []int
			for b.Loop() {
				owners = split.Hosts(nodes, sizes)
			}
			b.ReportMetric(makespan(nodes, sizes, owners)/below, "×bound")
		})
	}
}

// TestExchange: longest processing time alone yields 7.
func TestExchange(t *testing.T) {
	same := split.Time(func(n int) float64 { return float64(n) })
	nodes, sizes := []split.Time{same, same}, []int{3, 3, 2, 2, 2}
	if owners := split.Hosts(nodes, sizes); makespan(nodes, sizes, owners) != 6 {
		t.Errorf("%v take %v s", owners, makespan(nodes, sizes, owners))
	}
}
