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

// Balance is the experiments by which Zhang, Tan, Chen and Lü judged their balancing by predicted times: what each
// figure of a machine does to the time of a piece, and how long five nodes take for 500 URLs that are split by
// predictions, or evenly. Pieces are fetched by programs on made-up machines, in virtual time; predictions and splits
// are kumo's own (packages model and split). Beside these: the swarm against the shortest split, what samples are
// worth, and a crawl of polite hosts by unequal nodes.
type Balance struct {
	Seed     uint64
	Runs     int // with other pages each; what is simulated is their mean
	Programs []Program

	Factors    []Factor // of experiment 1
	Machines   int      // that the model has learnt from there, drawn at random
	PiecesEach int      // random pieces of each of them

	Nodes    []model.Machine // of experiments 2 and 4
	URLs     int             // that they are to fetch
	Assigned []int           // of these, the paper's split
	Samples  int             // random pieces, of all nodes together, that were learnt from in experiment 2

	Clusters []Clusters       // of experiment 3
	Now      func() time.Time // for times of computation; nil: they are not taken

	Curve    []int // numbers of samples, of experiment 4
	Models   int   // models that learn, each from other samples
	ColdRuns []int // runs, one after the other and counted from 1, whose times are told

	Crawl BalanceCrawl
}

// A Factor is one figure of a machine, or the number of URLs, with its values; the rest stays as it is.
type Factor struct {
	Name, Unit string
	Machine    model.Machine
	URLs       int
	Values     []float64
	Falls      bool // the paper has the time fall where the value rises
	set        func(m *model.Machine, urls *int, value float64)
}

// At is the machine and the number of URLs for a value.
func (f *Factor) At(value float64) (model.Machine, int) {
	m, urls := f.Machine, f.URLs
	f.set(&m, &urls, value)
	return m, urls
}

// factors are the paper's figures 2 to 7.
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

// BalanceOfPaper is the paper's experiments, and what goes beyond them.
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
		Clusters: []Clusters{{2, 200}, {5, 200}, {10, 100}, {20, 50}, {50, 20}, {100, 10}},
		Curve:    []int{0, 5, 10, 20, 50, 100, 200, 500}, Models: 10, ColdRuns: []int{1, 2, 3, 5, 10, 20},
		Crawl: BalanceCrawl{Strategies: []string{"shard", "balance"}, Hosts: 10_000, Pages: 4, Delay: 2 * time.Second,
			Slowness: []float64{1, 2, 4}, SlowsAt: 10 * time.Minute, SlowsBy: 8},
	}
}

// BalanceResult is what the experiments came to.
type BalanceResult struct {
	Factors  []FactorRow
	Splits   []SplitRow
	Swarm    []SwarmRow
	Variance []VarianceRow
	Curve    []CurveRow
	Whole    []ColdRow
	Crawls   []CrawlRow
}

// Run makes all experiments, and tells progress how many parts are done of how many. Its only error is that of ctx.
func (b *Balance) Run(ctx context.Context, progress func(done, of int)) (r BalanceResult, err error) {
	var parts []func()
	for i := range b.Programs {
		p := &b.Programs[i]
		parts = append(parts, func() { r.Factors = append(r.Factors, b.factors(p)...) },
			func() { r.Splits = append(r.Splits, b.splits(p)...) },
			func() { r.Curve = append(r.Curve, b.curve(p)...) },
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

// Streams of chance, one for each thing drawn.
const (
	drawPages = iota + 1
	drawMachines
	drawSamples
	drawClusters
)

func (b *Balance) chance(stream, number uint64) *rand.Rand {
	return rand.New(rand.NewPCG(b.Seed, stream<<32|number))
}

// pages is the seed of the pages of a run: machines of a run fetch the same ones, as far as they go.
func (b *Balance) pages(run int) uint64 { return b.chance(drawPages, uint64(run)).Uint64() }

// times are how long a machine takes for so many URLs in each run, in seconds.
func (b *Balance) times(p *Program, m model.Machine, urls int) []float64 {
	all := make([]float64, b.Runs)
	for run := range all {
		all[run] = p.Fetch(m, urls, b.pages(run)).Seconds
	}
	return all
}

// truth is a machine's mean time for numbers of URLs, each of which is measured once.
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

// maxSampled is how many URLs a random piece has at most: more than any node is given of 500.
const maxSampled = 300

// measure is a sample of a node: a random number of URLs, with pages of its own.
func measure(p *Program, node int, m model.Machine, rng *rand.Rand) model.Sample {
	urls := 1 + rng.IntN(maxSampled)
	return model.Sample{Node: nodeNamed(node), Machine: m, URLs: urls,
		Seconds: p.Fetch(m, urls, rng.Uint64()).Seconds}
}

func (b *Balance) learn(samples []model.Sample, seed uint64) *model.Model {
	m := model.New(model.Config{Seed: seed})
	for _, s := range samples {
		_ = m.Add(s) // samples that are made here are good
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

// randomMachine draws a machine such as the paper's.
func randomMachine(rng *rand.Rand) model.Machine {
	between := func(least, most float64) float64 { return least * math.Pow(most/least, rng.Float64()) }
	return model.Machine{Cores: float64(int(1) << rng.IntN(3)), GHz: between(2.4, 2.6), MemoryGB: between(0.5, 4),
		NetworkMbps: between(2, 30), DiskMbps: between(1, 18)}
}

func nodeNamed(i int) string { return fmt.Sprintf("node%d", i+1) }
