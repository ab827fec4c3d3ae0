package experiments

import (
	"kumo/internal/cluster/strategy/balance/split"
)

// A SplitRow is one split of the URLs among the nodes, with a program.
type SplitRow struct {
	Program   string
	Way       string
	Counts    []int
	Predicted []float64   // seconds, of each node
	Times     [][]float64 // seconds, by run and node
	Run       float64     // whole: until the last node is done; the mean of the runs
	Promised  float64     // the same, as predicted
	Tail      float64     // between the first node's end and the last's, as a part of the run; the mean
	Ratio     float64     // whole run by that of the even split
}

// The ways to split.
const (
	wayEven     = "even"
	wayPaper    = "paper's"
	waySwarm    = "swarm"
	wayLeast    = "swarm, makespan"
	wayExact    = "exact"
	wayBest     = "best"
	wayVariance = "least variance"
	ratioThat   = 0.575 // the paper's: 134 s by 233 s
)

// splits is experiment 2.
func (b *Balance) splits(p *Program) (rows []SplitRow) {
	truths := b.truths(p)
	rng := b.chance(drawSamples, 0)
	m := b.learn(b.samples(p, b.Samples, rng), b.Seed)
	predicted, _ := b.predictions(m)
	for _, way := range []string{wayEven, wayPaper, waySwarm, wayLeast, wayExact, wayBest} {
		counts := b.Assigned
		switch way {
		case wayPaper:
		case wayBest:
			counts = split.Exact(truths, b.URLs)
		default:
			counts = splitBy(way, predicted, b.URLs, b.Seed)
		}
		row := SplitRow{Program: p.Name, Way: way, Counts: counts, Promised: split.Makespan(predicted, counts)}
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

// fetchAll has the nodes fetch their parts, and returns their seconds by run and node.
func (b *Balance) fetchAll(p *Program, counts []int) [][]float64 {
	all := make([][]float64, b.Runs)
	for run := range all {
		for i, n := range counts {
			all[run] = append(all[run], p.Fetch(b.Nodes[i], n, b.pages(run*len(b.Nodes)+i)).Seconds)
		}
	}
	return all
}

// wholeRun is the mean of the runs' times, and of their tails as parts of them.
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
