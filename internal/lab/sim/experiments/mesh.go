package experiments

import (
	"context"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/lab/sim"
)

// Mesh is the three experiments by which Huang, Zeng and Chen judged their crawler without a centre on Kademlia: how
// its speed grows with nodes, how load is balanced, and what it costs to keep together. Nodes are kumo's own, overlay
// and mesh, in virtual time. What the paper leaves open is a field.
type Mesh struct {
	Seed   uint64
	Sample time.Duration // between two samples

	Speed        float64         // URLs a second that each node of experiment 1 fetches
	JoinTimes    []time.Duration // when each of its nodes comes; 0: it is there at the beginning
	Samples      int             // of experiment 1
	Hosts, Pages int             // of the web that it crawls

	Table     []MeshNode      // the nodes of experiments 2 and 3
	FixedArea int             // blocks of all their areas where load is not balanced
	Block     int             // URLs: H
	Time      time.Duration   // that each run of experiment 2 takes
	T         time.Duration   // in which nodes look at their load
	OtherT    []time.Duration // other values of T that are tried
	HostURLs  []int           // URLs of a host that are tried; one always is

	Processor func() time.Duration // as in sim.MeshConfig
}

// A MeshNode is a row of the paper's table 2.
type MeshNode struct {
	Speed    float64 // URLs a second that it can fetch: v
	Arriving float64 // URLs a second that come: lambda
	Area     int     // blocks on which it works: n
}

// Heavy reports whether more URLs come to the node than it can fetch.
func (n MeshNode) Heavy() bool { return n.Arriving > n.Speed }

// MeshOfPaper is the paper's experiments, and where it says nothing what seemed most likely.
func MeshOfPaper() Mesh {
	const m = time.Minute
	return Mesh{
		Seed: 1, Sample: 3 * m,
		Speed: 0.1, JoinTimes: []time.Duration{0, 0, 15 * m, 15 * m, 30 * m, 30 * m, 45 * m}, Samples: 20, Hosts: 600, Pages: 32,
		Table: []MeshNode{{0.2, 0.083, 6}, {0.2, 0.08, 6}, {0.05, 0.16, 1}, {0.1, 0.34, 1}, {0.2, 0.09, 6}, {0.1, 0.083, 4},
			{0.1, 0.22, 1}, {0.05, 0.136, 1}},
		FixedArea: 5, Block: 20, Time: 120 * m, T: 3 * m,
		OtherT: []time.Duration{m / 2, m, 10 * m, 19 * m, 40 * m}, HostURLs: []int{5, 20},
	}
}

// A Rule is by which load is balanced.
type Rule uint8

// The rules.
const (
	NoRule    Rule = iota // it is not
	ByPaper               // as the paper has it: load goes only where there is room for all that a node has too much
	ByKumo                // as much goes as there is room for
	ruleCount             // how many rules there are
)

func (r Rule) String() string { return [...]string{"none", "paper", "kumo"}[r] }

// A MeshSetting is what distinguishes one run of experiment 2 from another.
type MeshSetting struct {
	Rule     Rule
	T        time.Duration
	HostURLs int
	OwnAreas bool // nodes have areas as mesh computes them, instead of the table's
}

// A MeshRun is what a setting came to.
type MeshRun struct {
	MeshSetting
	sim.MeshSamples
}

// MeshResult is what the experiments came to. Balance begins with the runs of the three rules with the same T and hosts
// of one URL, in the order of the rules.
type MeshResult struct {
	Scaling sim.MeshSamples
	Balance []MeshRun
}

// Settings are the runs of experiment 2, in the order of the tables.
func (m *Mesh) Settings() (all []MeshSetting) {
	for r := range ruleCount {
		all = append(all, MeshSetting{Rule: r, T: m.T, HostURLs: 1})
	}
	for _, r := range []Rule{ByPaper, ByKumo} {
		for _, t := range m.OtherT {
			all = append(all, MeshSetting{Rule: r, T: t, HostURLs: 1})
		}
	}
	all = append(all, MeshSetting{Rule: ByKumo, T: m.T, HostURLs: 1, OwnAreas: true})
	for _, n := range m.HostURLs {
		if n == 1 {
			continue
		}
		all = append(all, MeshSetting{Rule: NoRule, T: m.T, HostURLs: n}, MeshSetting{Rule: ByKumo, T: m.T, HostURLs: n})
	}
	return all
}

// Run makes all runs, and tells progress how many are done of how many. Its only error is that of ctx.
func (m *Mesh) Run(ctx context.Context, progress func(done, of int)) (r MeshResult, err error) {
	settings := m.Settings()
	of := 1 + len(settings)
	r.Scaling = m.scaling()
	progress(1, of)
	for i, s := range settings {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Balance = append(r.Balance, MeshRun{s, m.balance(s)})
		progress(2+i, of)
	}
	return r, ctx.Err()
}

// scaling is experiment 1.
func (m *Mesh) scaling() sim.MeshSamples {
	c := sim.MeshRates{Hosts: m.Hosts, Pages: m.Pages, Interval: m.T, Sample: m.Sample, Samples: m.Samples,
		Processor: m.Processor}
	for _, at := range m.JoinTimes {
		c.Nodes = append(c.Nodes, sim.MeshRate{Fetch: m.Speed, JoinsAt: at})
	}
	return sim.RunMeshRates(c, m.Seed)
}

// balance is a run of experiment 2.
func (m *Mesh) balance(s MeshSetting) sim.MeshSamples {
	c := sim.MeshRates{HostURLs: s.HostURLs, Balance: s.Rule != NoRule, AllOrNothing: s.Rule == ByPaper, Block: m.Block,
		Interval: s.T, Sample: m.Sample, Samples: int(m.Time / m.Sample), Processor: m.Processor}
	for i, n := range m.Table {
		r := sim.MeshRate{Fetch: n.Speed, Arrive: n.Arriving, Area: m.Area(s, i)}
		if s.OwnAreas {
			r.Area = 0
		}
		c.Nodes = append(c.Nodes, r)
	}
	return sim.RunMeshRates(c, m.Seed)
}

// Area is how many blocks a node of the table works on, by which its load ratio is taken.
func (m *Mesh) Area(s MeshSetting, node int) int {
	if s.Rule == NoRule {
		return m.FixedArea
	}
	return m.Table[node].Area
}

// Formula is how many blocks mesh has a node of the table work on with an interval, by the paper's formula.
func (m *Mesh) Formula(node int, t time.Duration) int {
	return mesh.AreaOf(m.Table[node].Arriving, m.Table[node].Speed, t, m.Block)
}

// Ceiling is by what part more is fetched where all nodes fetch all the time, than where each fetches what comes to it.
func (m *Mesh) Ceiling() float64 {
	all, own := 0.0, 0.0
	for _, n := range m.Table {
		all += n.Speed
		own += min(n.Speed, n.Arriving)
	}
	return all/own - 1
}

// Surplus is how many URLs a second come beyond what all nodes together can fetch.
func (m *Mesh) Surplus() (s float64) {
	for _, n := range m.Table {
		s += n.Arriving - n.Speed
	}
	return s
}

// Ratio is a node's load ratio at the end of a sample, u: URLs that wait, by its area's size. Ideal is 1.
func (m *Mesh) Ratio(r *MeshRun, sample, node int) float64 {
	return float64(r.Nodes[sample][node].Waiting) / float64(m.Area(r.MeshSetting, node)*m.Block)
}

func (m *Mesh) ratios(r *MeshRun, sample int, kind func(MeshNode) bool) (all []float64) {
	for i, n := range m.Table {
		if kind(n) {
			all = append(all, m.Ratio(r, sample, i))
		}
	}
	return all
}

func (m *Mesh) sum(r *MeshRun, sample int, of func(sim.NodeSample) int, kind func(MeshNode) bool) (n int) {
	for i, s := range r.Nodes[sample] {
		if kind(m.Table[i]) {
			n += of(s)
		}
	}
	return n
}

func waitingOf(s sim.NodeSample) int { return s.Waiting }

func fetchedOf(s sim.NodeSample) int { return s.Fetched }

func anyNode(MeshNode) bool { return true }

func lightNode(n MeshNode) bool { return !n.Heavy() }

// Waiting is how many URLs wait at the end of a run: at all nodes, and at those to which more come than they can fetch.
func (m *Mesh) Waiting(r *MeshRun) (all, heavy int) {
	last := len(r.Nodes) - 1
	return m.sum(r, last, waitingOf, anyNode), m.sum(r, last, waitingOf, MeshNode.Heavy)
}

// Fetched is how many URLs all nodes have fetched after so many samples.
func (m *Mesh) Fetched(r *MeshRun, samples int) int {
	if samples == 0 {
		return 0
	}
	return m.sum(r, samples-1, fetchedOf, anyNode)
}

// Rise is by what part a run has fetched more than another in samples from one to before another.
func (m *Mesh) Rise(r, than *MeshRun, from, to int) float64 {
	a := m.Fetched(r, to) - m.Fetched(r, from)
	b := m.Fetched(than, to) - m.Fetched(than, from)
	return float64(a)/float64(max(b, 1)) - 1
}

// MaxLightLevel is the highest level that a node to which less comes than it can fetch was at, at the end of a sample:
// above 0 it has tipped into heavy.
func (m *Mesh) MaxLightLevel(r *MeshRun) int {
	most := -1 << 30
	for _, nodes := range r.Nodes {
		for i, n := range nodes {
			if lightNode(m.Table[i]) {
				most = max(most, n.Level)
			}
		}
	}
	return most
}

// Full is the first sample at the end of which as many URLs wait as all the table's areas hold; -1: there is none.
func (m *Mesh) Full(r *MeshRun) int {
	hold := 0
	for _, n := range m.Table {
		hold += n.Area * m.Block
	}
	for i := range r.Nodes {
		if m.sum(r, i, waitingOf, anyNode) >= hold {
			return i
		}
	}
	return -1
}
