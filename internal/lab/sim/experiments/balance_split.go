package experiments

import (
	"math"
	"time"

	"kumo/internal/cluster/strategy/balance/split"
)

// A SplitRow is the result of one way to split the URLs among the nodes, with a program.
type SplitRow struct {
	Program      string
	Way          string
	Counts       []int
	Predicted    []float64   // seconds, by node
	Times        [][]float64 // seconds, by run and node
	Run          float64     // mean time until the last node is done
	PredictedRun float64     // the predicted Run
	Tail         float64     // mean time between the first node's end and the last's, as a share of the run
	Ratio        float64     // run time relative to the even split's
}

// Ways to split.
const (
	wayEven     = "even"
	wayPaper    = "paper's"
	wayMethod   = "balance/paper" // the paper's network and swarm; the other ways have kumo's network
	waySwarm    = "swarm"
	wayLeast    = "swarm, makespan"
	wayExact    = "exact"
	wayBest     = "best"
	wayVariance = "least variance"
	paperRatio  = 0.575 // in the paper: 134 s / 233 s
)

// splits runs experiment 2.
func (b *Balance) splits(p *Program) (rows []SplitRow) {
	truths := b.truths(p)
	rng := b.chance(drawSamples, 0)
	samples := b.samples(p, b.Samples, rng)
	byKumo, _ := b.predictions(b.learn(samples, b.Seed, wayExact))
	byPaper, _ := b.predictions(b.learn(samples, b.Seed, wayMethod))
	for _, way := range []string{wayEven, wayPaper, wayMethod, waySwarm, wayLeast, wayExact, wayBest} {
		counts, predicted := b.Assigned, byKumo
		if way == wayMethod {
			predicted = byPaper
		}
		switch way {
		case wayPaper:
		case wayBest:
			counts = split.Exact(truths, b.URLs)
		default:
			counts = splitBy(way, predicted, b.URLs, b.Seed)
		}
		row := SplitRow{Program: p.Name, Way: way, Counts: counts, PredictedRun: split.Makespan(predicted, counts)}
		for i, n := range counts {
			row.Predicted = append(row.Predicted, predicted[i](n))
		}
		row.Times = b.fetchAll(p, counts)
		row.Run, row.Tail = wholeRun(row.Times)
		rows = append(rows, row)
	}
	for i := range rows {
		rows[i].Ratio = rows[i].Run / rows[0].Run
	}
	return rows
}

// fetchAll lets the nodes fetch their parts, and returns their times in seconds by run and node.
func (b *Balance) fetchAll(p *Program, counts []int) [][]float64 {
	all := make([][]float64, b.Runs)
	for run := range all {
		for i, n := range counts {
			all[run] = append(all[run], p.Fetch(b.Nodes[i], n, b.pages(run*len(b.Nodes)+i)).Seconds)
		}
	}
	return all
}

// wholeRun returns the mean time of the runs, and of their tails as shares of them.
func wholeRun(times [][]float64) (run, tail float64) {
	for _, nodes := range times {
		first, last := nodes[0], nodes[0]
		for _, s := range nodes {
			first, last = min(first, s), max(last, s)
		}
		run += last / float64(len(times))
		tail += (last - first) / last / float64(len(times))
	}
	return run, tail
}

// Clusters are random clusters: Count clusters of Nodes machines.
type Clusters struct{ Nodes, Count int }

// urlsPerNode is the number of URLs per node of a random cluster.
const urlsPerNode = 100

// A SwarmRow is the result of one way to split, over all clusters of a size.
type SwarmRow struct {
	Nodes, Clusters int
	Way             string
	Mean, Worst     float64       // makespan relative to the shortest
	Evaluations     float64       // mean evaluations of a node's time, per node
	Cost            time.Duration // mean time of a split; 0: not measured
}

// swarm runs experiment 3: exact splits against those of a swarm. The nodes' times are lower bounds of programs on
// random machines.
func (b *Balance) swarm(c Clusters) (rows []SwarmRow) {
	units := c.Nodes * urlsPerNode
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
	case waySwarm, wayMethod:
		return split.Swarm(nodes, units, split.SwarmConfig{Seed: seed})
	case wayLeast:
		return split.Swarm(nodes, units, split.SwarmConfig{Seed: seed, Fitness: split.Makespan})
	case wayEven:
		return split.Even(len(nodes), units)
	default:
		return split.Exact(nodes, units)
	}
}

// cluster returns the time functions of random machines, which count their evaluations.
func (b *Balance) cluster(nodes, number int, evaluations *int) (all []split.Time) {
	rng := b.chance(drawClusters, uint64(nodes)<<16|uint64(number))
	for range nodes {
		p, m := &b.Programs[rng.IntN(len(b.Programs))], randomMachine(rng)
		all = append(all, func(n int) float64 {
			*evaluations++
			return p.Bound(m, n)
		})
	}
	return all
}

// A VarianceRow is a split of 100 URLs among nodes that take n, n and 80n seconds for n URLs.
type VarianceRow struct {
	Way                string
	Counts             []int
	Deviation, Seconds float64 // standard deviation of the nodes' times, and the time of the run
}

// variance shows that the split with the least variance can take long.
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
