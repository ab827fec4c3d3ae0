package experiments

import (
	"math"
	"time"

	"kumo/internal/cluster/strategy/balance/split"
)

// Clusters are random ones of a size: so many machines each, and so many of them.
type Clusters struct{ Nodes, Count int }

// eachNode is how many URLs there are for each node of a random cluster.
const eachNode = 100

// A SwarmRow is one way to split, on all clusters of a size.
type SwarmRow struct {
	Nodes, Clusters int
	Way             string
	Mean, Worst     float64       // makespan by the shortest
	Evaluations     float64       // of times, a node, in the mean
	Cost            time.Duration // of a split, in the mean; 0: it was not measured
}

// swarm is experiment 3: exact splits against those of a swarm, on nodes whose times are bounds of programs on random
// machines.
func (b *Balance) swarm(c Clusters) (rows []SwarmRow) {
	units := c.Nodes * eachNode
	for _, name := range []string{wayExact, waySwarm, wayLeast, wayEven} {
		rows = append(rows, SwarmRow{Nodes: c.Nodes, Clusters: c.Count, Way: name})
	}
	for k := range c.Count {
		evaluations := 0
		nodes := b.cluster(c.Nodes, k, &evaluations)
		shortest := 0.0
		for i := range rows {
			evaluations = 0
			var began time.Time
			if b.Now != nil {
				began = b.Now()
			}
			counts := splitBy(rows[i].Way, nodes, units, uint64(k))
			if b.Now != nil {
				rows[i].Cost += b.Now().Sub(began) / time.Duration(c.Count)
			}
			rows[i].Evaluations += float64(evaluations) / float64(c.Nodes*c.Count)
			makespan := split.Makespan(nodes, counts)
			if i == 0 {
				shortest = makespan
			}
			rows[i].Mean += makespan / shortest / float64(c.Count)
			rows[i].Worst = max(rows[i].Worst, makespan/shortest)
		}
	}
	return rows
}

func splitBy(way string, nodes []split.Time, units int, seed uint64) []int {
	switch way {
	case wayVariance:
		return leastVariance(nodes, units)
	case waySwarm:
		return split.Swarm(nodes, units, split.SwarmConfig{Seed: seed})
	case wayLeast:
		return split.Swarm(nodes, units, split.SwarmConfig{Seed: seed, Fitness: split.Makespan})
	case wayEven:
		return split.Even(len(nodes), units)
	default:
		return split.Exact(nodes, units)
	}
}

// cluster are the times of random machines, which count how often they are evaluated.
func (b *Balance) cluster(nodes, number int, evaluations *int) (all []split.Time) {
	rng := b.chance(drawClusters, uint64(nodes)<<16|uint64(number))
	for range nodes {
		p, m := &b.Programs[rng.IntN(len(b.Programs))], anyMachine(rng)
		all = append(all, func(n int) float64 {
			*evaluations++
			return p.Bound(m, n)
		})
	}
	return all
}

// A VarianceRow is a split of 100 URLs among nodes that take n, n and 80n seconds for n of them.
type VarianceRow struct {
	Way                string
	Counts             []int
	Deviation, Seconds float64 // of the nodes' times, and of the whole run
}

// variance shows that the least variance can be a long run.
func (b *Balance) variance() (rows []VarianceRow) {
	const units = 100
	var nodes []split.Time
	for _, pace := range []float64{1, 1, 80} {
		nodes = append(nodes, func(n int) float64 { return pace * float64(n) })
	}
	for _, way := range []string{wayVariance, waySwarm, wayLeast, wayExact} {
		counts := splitBy(way, nodes, units, b.Seed)
		rows = append(rows, VarianceRow{way, counts, math.Sqrt(split.Variance(nodes, counts)),
			split.Makespan(nodes, counts)})
	}
	return rows
}

// leastVariance tries all splits among three nodes.
func leastVariance(nodes []split.Time, units int) (best []int) {
	least := math.Inf(1)
	for i := range units + 1 {
		for k := range units - i + 1 {
			counts := []int{i, k, units - i - k}
			if v := split.Variance(nodes, counts); v < least {
				best, least = counts, v
			}
		}
	}
	return best
}
