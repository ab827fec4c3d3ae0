package experiments

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"kumo/internal/cluster/strategy/balance/model"
	"kumo/internal/cluster/strategy/balance/split"
)

// Balance has the experiments by which Zhang, Tan, Chen and Lü evaluated load balancing with predicted running times:
// how each figure of a machine changes the time of a piece of work, and how long five nodes take for 500 URLs that are
// split by predictions or evenly. Programs fetch the pieces on simulated machines in virtual time; predictions and
// splits are kumo's own (packages model and split). Further experiments compare the swarm with the shortest split,
// measure the value of samples, and crawl polite hosts with unequal nodes.
type Balance struct {
	Seed     uint64
	Runs     int // each with different pages; results are their means
	Programs []Program

	Factors    []Factor // of experiment 1
	Machines   int      // random machines whose samples train the model
	PiecesEach int      // random pieces per machine

	Nodes    []model.Machine // of experiments 2 and 4
	URLs     int             // to split among Nodes
	Assigned []int           // the paper's split
	Samples  int             // random pieces, of all nodes together, that train the models of experiment 2
	Paper    model.Config    // of the paper's network, in experiments 2 and 4

	Clusters []Clusters       // of experiment 3
	Now      func() time.Time // clock for computation times; nil: not measured

	Curve    []int // numbers of samples in experiment 4
	Models   int   // models, each trained with different samples
	ColdRuns []int // numbers of the consecutive runs to report, counted from 1

	Crawl BalanceCrawl
}

// A Factor is a figure of a machine, or the number of URLs, with values to try while everything else stays the same.
type Factor struct {
	Name, Unit string
	Machine    model.Machine
	URLs       int
	Values     []float64
	Falls      bool // in the paper, the time falls as the value rises
	set        func(m *model.Machine, urls *int, value float64)
}

// At returns the machine and the number of URLs for a value.
func (f *Factor) At(value float64) (model.Machine, int) {
	m, urls := f.Machine, f.URLs
	f.set(&m, &urls, value)
	return m, urls
}

// factors returns the factors of the paper's figures 2 to 7.
func factors() []Factor {
	of := func(network, disk float64) model.Machine {
		return model.Machine{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: network, DiskMbps: disk}
	}
	const n = 100
	return []Factor{
		{"cores", "", of(18, 18), n, []float64{1, 2, 4}, false,
			func(m *model.Machine, _ *int, v float64) { m.Cores = v }},
		{"clock", "GHz", of(22, 2), n, []float64{2.4, 2.6}, true,
			func(m *model.Machine, _ *int, v float64) { m.GHz = v }},
		{"memory", "GB", of(2, 2), n, []float64{0.5, 1, 1.5, 2, 2.5, 3}, true,
			func(m *model.Machine, _ *int, v float64) { m.MemoryGB = v }},
		{"network", "Mb/s", of(2, 18), n, []float64{2, 4, 6, 10, 14, 18, 22, 26, 30}, true,
			func(m *model.Machine, _ *int, v float64) { m.NetworkMbps = v }},
		{"disk", "Mb/s", of(18, 2), n, []float64{2, 18}, true,
			func(m *model.Machine, _ *int, v float64) { m.DiskMbps = v }},
		{"URLs", "", of(6, 18), n, []float64{1, 10, 25, 50, 75, 100, 125, 150}, false,
			func(_ *model.Machine, urls *int, v float64) { *urls = int(v) }},
	}
}

// BalanceOfPaper returns the paper's experiments and the further ones.
func BalanceOfPaper() Balance {
	return Balance{
		Seed: 1, Runs: 20, Programs: []Program{PaperProgram(), KumoProgram()},
		Factors: factors(), Machines: 100, PiecesEach: 5,
		Nodes: []model.Machine{
			{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 18, DiskMbps: 18},
			{Cores: 4, GHz: 2.4, MemoryGB: 4, NetworkMbps: 5, DiskMbps: 18},
			{Cores: 4, GHz: 2.4, MemoryGB: 1, NetworkMbps: 12, DiskMbps: 3},
			{Cores: 4, GHz: 2.6, MemoryGB: 3, NetworkMbps: 2, DiskMbps: 1.5},
			{Cores: 1, GHz: 2.4, MemoryGB: 3, NetworkMbps: 12, DiskMbps: 1},
		},
		URLs: 500, Assigned: []int{164, 70, 120, 36, 110}, Samples: 200,
		Paper:    model.Config{Paper: true},
		Clusters: []Clusters{{2, 200}, {5, 200}, {10, 100}, {20, 50}, {50, 20}, {100, 10}},
		Curve:    []int{0, 5, 10, 20, 50, 100, 200, 500}, Models: 10, ColdRuns: []int{1, 2, 3, 5, 10, 20},
		Crawl: BalanceCrawl{Strategies: []string{"shard", "balance", "balance/paper"},
			Hosts: 10_000, Pages: 4, Delay: 2 * time.Second,
			Slowness: []float64{1, 2, 4}, SlowsAt: 10 * time.Minute, SlowsBy: 8},
	}
}

// BalanceResult has the results of all experiments.
type BalanceResult struct {
	Factors  []FactorRow
	Splits   []SplitRow
	Swarm    []SwarmRow
	Variance []VarianceRow
	Curve    []CurveRow
	Whole    []ColdRow
	Crawls   []CrawlRow
}

// Run runs all experiments. progress receives the number of finished parts and of all. The only error is that of ctx.
func (b *Balance) Run(ctx context.Context, progress func(done, of int)) (r BalanceResult, err error) {
	var parts []func()
	for i := range b.Programs {
		p := &b.Programs[i]
		parts = append(parts, func() { r.Factors = append(r.Factors, b.factors(p)...) },
			func() { r.Splits = append(r.Splits, b.splits(p)...) },
			func() { r.Curve = append(r.Curve, b.curve(p, wayExact)...) },
			func() { r.Curve = append(r.Curve, b.curve(p, wayMethod)...) },
			func() { r.Whole = append(r.Whole, b.coldStart(p)...) })
	}
	for _, c := range b.Clusters {
		parts = append(parts, func() { r.Swarm = append(r.Swarm, b.swarm(c)...) })
	}
	parts = append(parts, func() { r.Variance = b.variance() })
	for _, slows := range []bool{false, true} {
		for _, name := range b.Crawl.Strategies {
			parts = append(parts, func() { r.Crawls = append(r.Crawls, b.crawl(name, slows)) })
		}
	}
	for i, part := range parts {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		part()
		progress(i+1, len(parts))
	}
	ratios(r.Crawls)
	return r, nil
}

// Independent random streams.
const (
	drawPages = iota + 1
	drawMachines
	drawSamples
	drawClusters
)

func (b *Balance) chance(stream, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(b.Seed, stream<<32|number))
}

// pages returns the seed of a run's pages. All machines of a run fetch the same sequence of pages.
func (b *Balance) pages(run int) uint64 { return b.chance(drawPages, uint64(run)).Uint64() }

// times returns a machine's time for so many URLs in each run, in seconds.
func (b *Balance) times(p *Program, m model.Machine, urls int) []float64 {
	all := make([]float64, b.Runs)
	for run := range all {
		all[run] = p.Fetch(m, urls, b.pages(run)).Seconds
	}
	return all
}

// truth returns a function that measures and caches a machine's mean time for a number of URLs.
func (b *Balance) truth(p *Program, m model.Machine) split.Time {
	known := map[int]float64{}
	return func(n int) float64 {
		if _, ok := known[n]; !ok {
			known[n], _ = meanAndDeviation(b.times(p, m, n))
		}
		return known[n]
	}
}

func (b *Balance) truths(p *Program) (all []split.Time) {
	for _, m := range b.Nodes {
		all = append(all, b.truth(p, m))
	}
	return all
}

// maxSampled is the largest size of a random piece: more URLs than any node gets of 500.
const maxSampled = 300

// measure returns a sample of a node: the time for a random number of URLs, with their own pages.
func measure(p *Program, node int, m model.Machine, rng *rand.Rand) model.Sample {
	urls := 1 + rng.IntN(maxSampled)
	return model.Sample{Node: nodeNamed(node), Machine: m, URLs: urls,
		Seconds: p.Fetch(m, urls, rng.Uint64()).Seconds}
}

// learn returns the model for a way to split: the paper's network for the paper's method, otherwise kumo's.
func (b *Balance) learn(samples []model.Sample, seed uint64, way string) *model.Model {
	cfg := model.Config{}
	if way == wayMethod {
		cfg = b.Paper
	}
	cfg.Seed = seed
	m := model.New(cfg)
	for _, s := range samples {
		_ = m.Add(s) // generated samples are valid
	}
	m.Train(200)
	return m
}

func (b *Balance) predictions(m *model.Model) (all []split.Time, basis model.Basis) {
	for i, machine := range b.Nodes {
		f, by := m.Time(nodeNamed(i), machine)
		all, basis = append(all, f), by
	}
	return all, basis
}

// randomMachine returns a random machine in the range of the paper's.
func randomMachine(rng *rand.Rand) model.Machine {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, rng.Float64()) }
	return model.Machine{Cores: float64(int(1) << rng.IntN(3)), GHz: between(2.4, 2.6), MemoryGB: between(0.5, 4),
		NetworkMbps: between(2, 30), DiskMbps: between(1, 18)}
}

func nodeNamed(i int) string { return fmt.Sprintf("node%d", i+1) }
