package experiments

import (
	"math"
	"math/rand/v2"
	"slices"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// A CurveRow is the mean result of models with a number of samples, for a program.
type CurveRow struct {
	Program  string
	Way      string // wayExact or wayMethod
	Samples  int
	Basis    model.Basis // of the first model
	HeldBack float64     // the model's own estimate from held-back samples; NaN if it has no neural network
	Error    float64     // error for new samples of the same nodes
	Run      float64     // seconds for the whole run, split by the model's predictions
	Longer   float64     // run time relative to the shortest possible
	Worst    float64     // the same for the worst model
}

// testSamples is the number of samples that errors are measured with. No model is trained with them.
const testSamples = 200

// samples returns random pieces of the nodes in turn.
func (b *Balance) samples(p *Program, count int, rng *rand.Rand) (all []model.Sample) {
	for i := range count {
		node := i % len(b.Nodes)
		all = append(all, measure(p, node, b.Nodes[node], rng))
	}
	return all
}

// curve runs experiment 4: the value of samples, for a way to split.
func (b *Balance) curve(p *Program, way string) (rows []CurveRow) {
	truths := b.truths(p)
	best, _ := wholeRun(b.fetchAll(p, split.Exact(truths, b.URLs)))
	fresh := b.samples(p, testSamples, b.chance(drawSamples, 1))
	for _, count := range b.Curve {
		row := CurveRow{Program: p.Name, Way: way, Samples: count}
		for k := range b.Models {
			all := b.samples(p, count, b.chance(drawSamples, uint64(2+k)))
			m := b.learn(all, b.Seed+uint64(k), way)
			times, basis := b.predictions(m)
			if k == 0 {
				row.Basis = basis
			}
			run, _ := wholeRun(b.fetchAll(p, splitBy(way, times, b.URLs, b.Seed+uint64(k))))
			models := float64(b.Models)
			row.HeldBack += heldBack(m) / models
			row.Error += errorOf(m, fresh) / models
			row.Run += run / models
			row.Longer += run / best / models
			row.Worst = max(row.Worst, run/best)
		}
		rows = append(rows, row)
	}
	return rows
}

func heldBack(m *model.Model) float64 {
	if r := m.Report(); r.Trained > 0 && r.HeldBack > 0 {
		return r.Error
	}
	return math.NaN()
}

// errorOf returns the root mean square of log(predicted / true).
func errorOf(m *model.Model, samples []model.Sample) float64 {
	squares := 0.0
	for _, s := range samples {
		f, _ := m.Time(s.Node, s.Machine)
		d := math.Log(f(s.URLs) / s.Seconds)
		squares += d * d
	}
	return math.Sqrt(squares / float64(len(samples)))
}

// A ColdRow is a run of nodes that start without samples and learn one sample per node from each run; means over all
// models.
type ColdRow struct {
	Program string
	Number  int // of the run, from 1
	Samples int // before the run
	Basis   model.Basis
	Counts  []int   // URLs of each node, for the first model
	Run     float64 // seconds
	Longer  float64 // run time relative to the shortest possible
	Error   float64 // of the predicted node times
}

// coldStart runs the cold start of experiment 4.
func (b *Balance) coldStart(p *Program) (rows []ColdRow) {
	truths := b.truths(p)
	best, _ := wholeRun(b.fetchAll(p, split.Exact(truths, b.URLs)))
	last := slices.Max(b.ColdRuns)
	all := make([]ColdRow, last)
	for k := range b.Models {
		m := model.New(model.Config{Seed: b.Seed + uint64(k)})
		rng := b.chance(drawSamples, uint64(1000+k))
		for number := 1; number <= last; number++ {
			times, basis := b.predictions(m)
			counts := split.Exact(times, b.URLs)
			row := &all[number-1]
			if k == 0 {
				*row = ColdRow{Program: p.Name, Number: number, Samples: len(m.Samples()), Basis: basis, Counts: counts}
			}
			models := float64(b.Models)
			run, squares := 0.0, 0.0
			var done []model.Sample
			for i, n := range counts {
				s := model.Sample{Node: nodeNamed(i), Machine: b.Nodes[i], URLs: n,
					Seconds: p.Fetch(b.Nodes[i], n, rng.Uint64()).Seconds}
				run = max(run, s.Seconds)
				if n > 0 {
					d := math.Log(times[i](n) / s.Seconds)
					squares += d * d / float64(len(b.Nodes))
					done = append(done, s)
				}
			}
			row.Run += run / models
			row.Longer += run / best / models
			row.Error += math.Sqrt(squares) / models
			for _, s := range done {
				_ = m.Add(s)
			}
			m.Train(200)
		}
	}
	for _, number := range b.ColdRuns {
		rows = append(rows, all[number-1])
	}
	return rows
}
