package experiments

import (
	"context"
	"time"

	"kumo/internal/cluster/member/mesh"
	"kumo/internal/lab/sim"
)

// Mesh has the three experiments by which Huang, Zeng and Chen evaluated their decentralized crawler on Kademlia: how
// its speed grows with nodes, how it balances load, and what communication it needs. The nodes run kumo's own overlay
// and mesh in virtual time. What the paper leaves open is a field.
type Mesh struct {
	Seed   uint64
	Sample time.Duration // between two samples

	Speed        float64         // URLs per second that each node of experiment 1 fetches
	JoinTimes    []time.Duration // when each of its nodes joins; 0: at the start
	Samples      int             // number of samples of experiment 1
	Hosts, Pages int             // of the web of experiment 1

	Table     []MeshNode      // nodes of experiments 2 and 3
	FixedArea int             // blocks of each work area without balancing
	Block     int             // URLs per block: H
	Time      time.Duration   // length of each run of experiment 2
	T         time.Duration   // interval between two checks of a node's load
	OtherT    []time.Duration // other values of T to try
	HostURLs  []int           // other numbers of URLs per host to try; 1 is always tried

	Processor func() time.Duration // as in sim.MeshConfig
}

// A MeshNode is a row of the paper's table 2.
type MeshNode struct {
	Speed    float64 // URLs per second that it can fetch: v
	Arriving float64 // URLs per second that arrive: lambda
	Area     int     // blocks of its work area: n
}

// Heavy reports whether more URLs arrive than the node can fetch.
func (n MeshNode) Heavy() bool { return n.Arriving > n.Speed }

// MeshOfPaper returns the paper's experiments, with likely values where the paper gives none.
func MeshOfPaper() Mesh {
	const m = time.Minute
	return Mesh{
		Seed: 1, Sample: 3 * m,
		Speed: 0.1, JoinTimes: []time.Duration{0, 0, 15 * m, 15 * m, 30 * m, 30 * m, 45 * m}, Samples: 20, Hosts: 600,
		Pages: 32,
		Table: []MeshNode{{0.2, 0.083, 6}, {0.2, 0.08, 6}, {0.05, 0.16, 1}, {0.1, 0.34, 1}, {0.2, 0.09, 6}, {0.1, 0.083, 4},
			{0.1, 0.22, 1}, {0.05, 0.136, 1}},
		FixedArea: 5, Block: 20, Time: 120 * m, T: 3 * m,
		OtherT: []time.Duration{m / 2, m, 10 * m, 19 * m, 40 * m}, HostURLs: []int{5, 20},
	}
}

// A Rule selects how load is balanced.
type Rule uint8

// The rules.
const (
	NoRule    Rule = iota // no balancing
	ByPaper               // the paper's: a node gives load away only if all its excess fits
	ByBlocks              // the same with a node that gives away as much as fits
	ByTime                // kumo's default: nodes with little work request some, so that all end at the same time
	ruleCount             // number of rules
)

func (r Rule) String() string { return [...]string{"none", "paper", "blocks", "time"}[r] }

// A MeshSetting has the parameters of a run of experiment 2.
type MeshSetting struct {
	Rule     Rule
	T        time.Duration // not with ByTime
	HostURLs int
	OwnAreas bool // mesh computes the work areas, instead of those of the table
}

// A MeshRun is the result of a setting.
type MeshRun struct {
	MeshSetting
	sim.MeshSamples
}

// MeshResult has the results of all experiments. Balance begins with the runs of the four rules, in their order, with
// the same T and hosts of one URL.
type MeshResult struct {
	Scaling sim.MeshSamples
	Balance []MeshRun
	History []MeshHistory
}

// Settings returns the runs of experiment 2, in the order of the tables.
func (m *Mesh) Settings() (all []MeshSetting) {
	for r := range ruleCount {
		all = append(all, MeshSetting{Rule: r, T: m.T, HostURLs: 1})
	}
	for _, r := range []Rule{ByPaper, ByBlocks} {
		for _, t := range m.OtherT {
			all = append(all, MeshSetting{Rule: r, T: t, HostURLs: 1})
		}
	}
	all = append(all, MeshSetting{Rule: ByBlocks, T: m.T, HostURLs: 1, OwnAreas: true})
	for _, n := range m.HostURLs {
		if n == 1 {
			continue
		}
		for _, r := range []Rule{NoRule, ByBlocks, ByTime} {
			all = append(all, MeshSetting{Rule: r, T: m.T, HostURLs: n})
		}
	}
	return all
}

// Run runs all experiments. progress receives the number of finished runs and of all. The only error is that of ctx.
func (m *Mesh) Run(ctx context.Context, progress func(done, of int)) (r MeshResult, err error) {
	settings := m.Settings()
	of := 1 + len(settings)
	r.Scaling, r.History = m.scaling(), m.History()
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

// scaling runs experiment 1.
func (m *Mesh) scaling() sim.MeshSamples {
	c := sim.MeshRates{Hosts: m.Hosts, Pages: m.Pages, Paper: true, Interval: m.T, Sample: m.Sample, Samples: m.Samples,
		Processor: m.Processor}
	for _, at := range m.JoinTimes {
		c.Nodes = append(c.Nodes, sim.MeshRate{Fetch: m.Speed, JoinsAt: at})
	}
	return sim.RunMeshRates(c, m.Seed)
}

// balance makes a run of experiment 2.
func (m *Mesh) balance(s MeshSetting) sim.MeshSamples {
	c := sim.MeshRates{HostURLs: s.HostURLs, Balance: s.Rule != NoRule, Partial: s.Rule == ByBlocks, Block: m.Block,
		Interval: s.T, Sample: m.Sample, Samples: int(m.Time / m.Sample), Processor: m.Processor, Paper: s.Rule != ByTime}
	if s.Rule == ByTime { // its nodes check their load each second
		c.Interval = 0
	}
	for i, n := range m.Table {
		r := sim.MeshRate{Fetch: n.Speed, Arrive: n.Arriving, Area: m.Area(s, i)}
		if s.OwnAreas {
			r.Area = 0
		}
		c.Nodes = append(c.Nodes, r)
	}
	return sim.RunMeshRates(c, m.Seed)
}

// Area returns the size of a table node's work area in blocks, which its load ratio refers to.
func (m *Mesh) Area(s MeshSetting, node int) int {
	if s.Rule == NoRule {
		return m.FixedArea
	}
	return m.Table[node].Area
}

// Formula returns the size of a table node's work area in blocks, by the paper's formula, for an interval.
func (m *Mesh) Formula(node int, t time.Duration) int {
	return mesh.AreaOf(m.Table[node].Arriving, m.Table[node].Speed, t, m.Block)
}

// Ceiling returns the relative increase of output if all nodes fetched all the time, compared with each node fetching
// only the URLs that arrive at it.
func (m *Mesh) Ceiling() float64 {
	all, own := 0.0, 0.0
	for _, n := range m.Table {
		all += n.Speed
		own += min(n.Speed, n.Arriving)
	}
	return all/own - 1
}

// Surplus returns the URLs per second that arrive beyond what all nodes can fetch.
func (m *Mesh) Surplus() (s float64) {
	for _, n := range m.Table {
		s += n.Arriving - n.Speed
	}
	return s
}

// Ratio returns a node's load ratio u at the end of a sample: pending URLs divided by the size of its area. 1 is ideal.
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

// Waiting returns the URLs pending at the end of a run: at all nodes, and at heavy nodes.
func (m *Mesh) Waiting(r *MeshRun) (all, heavy int) {
	last := len(r.Nodes) - 1
	return m.sum(r, last, waitingOf, anyNode), m.sum(r, last, waitingOf, MeshNode.Heavy)
}

// Fetched returns the URLs that all nodes have fetched after a number of samples.
func (m *Mesh) Fetched(r *MeshRun, samples int) int {
	if samples == 0 {
		return 0
	}
	return m.sum(r, samples-1, fetchedOf, anyNode)
}

// Rise returns the relative increase in fetched URLs of a run over another, in samples from (inclusive) to to
// (exclusive).
func (m *Mesh) Rise(r, than *MeshRun, from, to int) float64 {
	a := m.Fetched(r, to) - m.Fetched(r, from)
	b := m.Fetched(than, to) - m.Fetched(than, from)
	return float64(a)/float64(max(b, 1)) - 1
}

// MaxLightLevel returns the highest load level of a light node at the end of any sample. Above 0, balancing has made
// the node heavy.
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

// Full returns the first sample at whose end as many URLs are pending as all areas of the table hold; -1 if there is
// none.
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
