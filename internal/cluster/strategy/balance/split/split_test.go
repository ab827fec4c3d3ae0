package split_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"kumo/internal/cluster/strategy/balance/split"
	"kumo/internal/lab/testmain"
)

// anyTime returns an increasing function with 0.1 to 10 s per unit. Most have a start-up time; some are convex or
// concave, some step functions, some equal to others, some limited to a number of units.
func anyTime(rng *rand.Rand, units int) split.Time {
	pace, start := math.Pow(10, 2*rng.Float64()-1), 0.0
	if rng.IntN(3) > 0 {
		start = 10 * rng.Float64()
	}
	switch rng.IntN(8) {
	case 0:
		return func(n int) float64 { return start + pace*math.Pow(float64(n), 1.3) }
	case 1:
		return func(n int) float64 { return start + pace*math.Pow(float64(n), 0.7) }
	case 2:
		return func(n int) float64 { return start + pace*float64((n+4)/5*5) }
	case 3:
		return func(n int) float64 { return float64(n) }
	case 4:
		most := rng.IntN(units + 1)
		return func(n int) float64 {
			if n > most {
				return math.Inf(1)
			}
			return pace * float64(n)
		}
	default:
		return func(n int) float64 { return start + pace*float64(n) }
	}
}

func anyNodes(rng *rand.Rand, most, units int) []split.Time {
	nodes := make([]split.Time, 1+rng.IntN(most))
	for i := range nodes {
		nodes[i] = anyTime(rng, units)
	}
	return nodes
}

func sum(counts []int) (all int) {
	for _, n := range counts {
		all += n
	}
	return all
}

// whole fails the test unless the split has all units, and no negative counts.
func whole(t *testing.T, nodes []split.Time, counts []int, units int) {
	t.Helper()
	if len(counts) != len(nodes) || sum(counts) != units || slices.Min(counts) < 0 {
		t.Fatalf("%d units for %d nodes are split into %v", units, len(nodes), counts)
	}
}

// TestExact: no split is shorter.
func TestExact(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		units := rng.IntN(20)
		nodes := anyNodes(rng, 4, units)
		counts := split.Exact(nodes, units)
		whole(t, nodes, counts, units)
		least := math.Inf(1)
		every(make([]int, len(nodes)), 0, units, func(counts []int) {
			least = min(least, split.Makespan(nodes, counts))
		})
		if got := split.Makespan(nodes, counts); got != least {
			t.Fatalf("seed %d: %d units in %v take %v s, not %v s", seed, units, counts, got, least)
		}
	}
}

// every calls f with every split of the units over counts[at:].
func every(counts []int, at, units int, f func([]int)) {
	if at == len(counts)-1 {
		counts[at] = units
		f(counts)
		return
	}
	for n := range units + 1 {
		counts[at] = n
		every(counts, at+1, units-n, f)
	}
}

// TestExactIsUnitByUnit: blocks lead to the same split as assigning unit by unit, including ties, with few evaluations.
func TestExactIsUnitByUnit(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		units := rng.IntN(5000)
		nodes := anyNodes(rng, 40, units)
		want := make([]int, len(nodes))
		for range units {
			first, least := 0, math.Inf(1)
			for i, f := range nodes {
				if time := f(want[i] + 1); time < least {
					first, least = i, time
				}
			}
			want[first]++
		}
		evaluations := 0
		for i, f := range nodes {
			nodes[i] = func(n int) float64 { evaluations++; return f(n) }
		}
		if got := split.Exact(nodes, units); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, not %v", seed, got, want)
		}
		m, n := float64(len(nodes)), float64(units)
		if most := 6 * m * (2 + math.Log2(1+n/m)); float64(evaluations) > most {
			t.Errorf("seed %d: %d nodes, %d units: %d evaluations", seed, len(nodes), units, evaluations)
		}
	}
}

// TestMakespanAndVariance shows a case in which the paper's goal is not the user's.
func TestMakespanAndVariance(t *testing.T) {
	fast := split.Time(func(n int) float64 { return float64(n) })
	slow := split.Time(func(n int) float64 { return 80 * float64(n) })
	nodes := []split.Time{fast, fast, slow}
	if got := split.Exact(nodes, 100); !slices.Equal(got, []int{50, 50, 0}) {
		t.Errorf("the shortest run is %v", got)
	}
	least, of := math.Inf(1), []int{}
	every(make([]int, 3), 0, 100, func(counts []int) {
		if v := split.Variance(nodes, counts); v < least {
			least, of = v, slices.Clone(counts)
		}
	})
	if !slices.Equal(of, []int{49, 50, 1}) || split.Makespan(nodes, of) != 80 {
		t.Errorf("the least variance is that of %v, with a makespan of %v s", of, split.Makespan(nodes, of))
	}
}

// TestNoTime: NaN counts as impossible.
func TestNoTime(t *testing.T) {
	odd := split.Time(func(n int) float64 {
		if n > 3 {
			return math.NaN()
		}
		return float64(n)
	})
	slow := split.Time(func(n int) float64 { return 100 * float64(n) })
	if got := split.Exact([]split.Time{odd, slow}, 5); !slices.Equal(got, []int{3, 2}) {
		t.Error(got)
	}
}

func TestEven(t *testing.T) {
	if got := split.Even(5, 500); !slices.Equal(got, []int{100, 100, 100, 100, 100}) {
		t.Error(got)
	}
	if got := split.Even(4, 7); !slices.Equal(got, []int{2, 2, 2, 1}) {
		t.Error(got)
	}
}

// realNodes returns times with a start-up of 0 to 10 s and 0.1 to 10 s per unit.
func realNodes(rng *rand.Rand, count int) []split.Time {
	nodes := make([]split.Time, count)
	for i := range nodes {
		start, pace := 10*rng.Float64(), math.Pow(10, 2*rng.Float64()-1)
		nodes[i] = func(n int) float64 { return start + pace*float64(n) }
	}
	return nodes
}

// TestSwarm: the exact split is never worse than that of a swarm, with the paper's fitness or with the makespan. The
// ratios are logged.
func TestSwarm(t *testing.T) {
	clusters := uint64(testmain.Rounds(1000, 10_000))
	fitness := map[string]split.Fitness{"variance": split.Variance, "makespan": split.Makespan}
	ratios := map[string][]float64{}
	var even []float64
	for seed := range clusters {
		rng := rand.New(rand.NewPCG(seed, 3))
		nodes := realNodes(rng, 2+rng.IntN(9))
		units := 1 + rng.IntN(1000)
		exact := split.Makespan(nodes, split.Exact(nodes, units))
		for name, f := range fitness {
			found := split.Swarm(nodes, units, split.SwarmConfig{Fitness: f, Seed: seed})
			whole(t, nodes, found, units)
			time := split.Makespan(nodes, found)
			if time < exact {
				t.Fatalf("seed %d: by swarm %v s, exact %v s", seed, time, exact)
			}
			ratios[name] = append(ratios[name], time/exact)
		}
		even = append(even, split.Makespan(nodes, split.Even(len(nodes), units))/exact)
	}
	for _, name := range []string{"variance", "makespan"} {
		t.Logf("%d clusters, swarm by %s against exact: %s", clusters, name, spread(ratios[name]))
		if m, e := mean(ratios[name]), mean(even); m > e/2 {
			t.Errorf("by %s a swarm takes %.3f times the shortest time, the even split %.3f times", name, m, e)
		}
	}
	t.Logf("%d clusters, even split against exact: %s", clusters, spread(even))
}

func mean(of []float64) float64 {
	var all float64
	for _, v := range of {
		all += v
	}
	return all / float64(len(of))
}

func spread(of []float64) string {
	slices.SortFunc(of, func(a, b float64) int { return cmp.Compare(a, b) })
	return fmt.Sprintf("mean %.4f, median %.4f, 99 of 100 below %.3f, worst %.3f",
		mean(of), of[len(of)/2], of[len(of)*99/100], of[len(of)-1])
}

// TestSwarmOfMany: a swarm's split is valid for more nodes than units, one node, and no units, and depends only on the
// seed.
func TestSwarmOfMany(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		units := rng.IntN(20)
		nodes := anyNodes(rng, 30, units)
		found := split.Swarm(nodes, units, split.SwarmConfig{Seed: seed, Iterations: 20})
		whole(t, nodes, found, units)
		again := split.Swarm(nodes, units, split.SwarmConfig{Seed: seed, Iterations: 20})
		if !slices.Equal(found, again) {
			t.Fatalf("seed %d: %v, then %v", seed, found, again)
		}
	}
}

func BenchmarkExact(b *testing.B) { bench(b, split.Exact) }

func BenchmarkSwarm(b *testing.B) {
	bench(b, func(nodes []split.Time, units int) []int { return split.Swarm(nodes, units, split.SwarmConfig{}) })
}

// bench splits 100 units per node.
func bench(b *testing.B, find func([]split.Time, int) []int) {
	for _, m := range []int{5, 20, 100, 1000} {
		b.Run(fmt.Sprint(m), func(b *testing.B) {
			nodes := realNodes(rand.New(rand.NewPCG(1, 1)), m)
			exact := split.Makespan(nodes, split.Exact(nodes, 100*m))
			var found []int
			for b.Loop() {
				found = find(nodes, 100*m)
			}
			b.ReportMetric(split.Makespan(nodes, found)/exact, "×exact")
		})
	}
}

// TestPenalty: the penalties are those of equation 11.
func TestPenalty(t *testing.T) {
	for _, c := range []struct {
		counts []int
		want   float64
	}{{[]int{40, 60}, 0}, {[]int{40, 57}, 9}, {[]int{103, -3}, 36}, {[]int{100, -3, -1}, 16 + 64}} {
		if got := split.Penalty(c.counts, 100); got != c.want {
			t.Errorf("%v: %v, not %v", c.counts, got, c.want)
		}
	}
}
