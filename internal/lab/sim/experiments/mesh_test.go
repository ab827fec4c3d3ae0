package experiments

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/lab/sim"
	"kumo/internal/lab/testmain"
)

// shortMesh is the paper's experiments, but for further settings, and shorter.
func shortMesh(seed uint64, takes time.Duration) *Mesh {
	m := MeshOfPaper()
	m.Seed, m.Time, m.OtherT, m.HostURLs = seed, takes, nil, nil
	return &m
}

func runMesh(t *testing.T, m *Mesh) MeshResult {
	t.Helper()
	r, err := m.Run(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestMeshExperiments: whatever the seed, nodes' speeds add up, load goes where there is room for it, and by the
// paper's rule it stops to where a node has far too much. By kumo's rule, which leaves no room unused, URLs that arrive
// fill a light node beyond its area with some seeds: by a block, and not for long.
func TestMeshExperiments(t *testing.T) {
	testmain.Slow(t)
	seed := rand.Uint64N(1e6) + 1
	t.Logf("seed %d", seed)
	m := shortMesh(seed, 75*time.Minute)
	r := runMesh(t, m)
	want := []string{ // those that are not seen
		"paper: load ratios of light nodes come to be around 1",
		"paper: all load ratios come to be around 1",
		"kumo: all load ratios come to be around 1",
		"paper: most of it is for routing",
		"kumo: most of it is for routing",
	}
	either := []string{"kumo: no light node tips into heavy", "paper: load of heavy nodes falls much",
		"paper: load of light nodes rises",
		"paper: output rises more with time",
		"paper: communication is nearly the same with balancing", "kumo: communication is nearly the same with balancing"}
	var got []string
	for _, s := range m.Judge(&r) {
		text := s.Of[strings.LastIndex(s.Of, " ")+1:] + ": " + s.Statement
		if s.Seen != (s.Why == "") || s.Measured == "" {
			t.Errorf("a reason where there should be none, or none: %+v", s)
		}
		if !s.Seen && !slices.Contains(either, text) {
			got = append(got, text)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("not seen: %q\nwant %q", got, want)
	}
	paper, kumo := m.Summary(&r, int(ByPaper)), m.Summary(&r, int(ByKumo))
	if tips, of := m.tips(&r.Balance[ByKumo]); kumo.MostOfLight > 1 || tips > of/20 {
		t.Errorf("light nodes are heavy in %d of %d samples, by up to %d blocks", tips, of, kumo.MostOfLight)
	}
	if kumo.Fetched <= paper.Fetched || kumo.Heavy >= paper.Heavy || paper.Fetched <= m.Summary(&r, int(NoRule)).Fetched {
		t.Errorf("paper %+v, kumo %+v", paper, kumo)
	}
}

// tips is in how many samples of light nodes these were heavy.
func (m *Mesh) tips(r *MeshRun) (tips, of int) {
	for _, nodes := range r.Nodes {
		for i, n := range nodes {
			if lightNode(m.Table[i]) {
				of++
				tips += max(0, min(n.Level, 1))
			}
		}
	}
	return tips, of
}

func TestMeshOfOneSeedIsTheSameBytes(t *testing.T) {
	testmain.Slow(t)
	all := func(seed uint64) []byte {
		m := shortMesh(seed, 10*time.Minute)
		m.Samples = 7
		r := runMesh(t, m)
		var b bytes.Buffer
		for _, table := range m.Tables(&r) {
			if err := table.Write(&b); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range m.Pictures(&r) {
			if err := p.SVG(&b, p.Title); err != nil {
				t.Fatal(err)
			}
		}
		return b.Bytes()
	}
	one := all(3)
	if !bytes.Equal(one, all(3)) {
		t.Error("the same seed gives other bytes")
	}
	if bytes.Equal(one, all(4)) {
		t.Error("another seed makes no difference")
	}
}

// TestMeshOfPaper: what follows from the paper's table alone.
func TestMeshOfPaper(t *testing.T) {
	m := MeshOfPaper()
	if c := m.Ceiling(); c < 0.572 || c > 0.573 {
		t.Errorf("the ceiling is %v", c)
	}
	if s := m.Surplus(); s < 0.1919 || s > 0.1921 {
		t.Errorf("the surplus is %v", s)
	}
	var light []int
	for i, n := range m.Table {
		if !n.Heavy() {
			light = append(light, m.Formula(i, 19*time.Minute))
		}
	}
	if !slices.Equal(light, []int{6, 6, 6, 1}) {
		t.Errorf("by the formula light nodes have areas of %d blocks with 19 minutes", light)
	}
}

// asMeshReported is a result of which all that the paper states is true.
func asMeshReported(m *Mesh) (r MeshResult) {
	all := 0
	for sample := range 20 {
		nodes := min(2+2*(sample/5), 7)
		var s []sim.NodeSample
		for range nodes {
			s = append(s, sim.NodeSample{})
		}
		all += 18 * nodes
		s[0].Fetched = all
		r.Scaling.Nodes = append(r.Scaling.Nodes, s)
	}
	for rule := range ruleCount {
		run := MeshRun{MeshSetting: MeshSetting{Rule: rule, T: m.T, HostURLs: 1}}
		for sample := range 40 {
			var s []sim.NodeSample
			for _, n := range m.Table {
				x := sim.NodeSample{Level: -3, Waiting: n.Area * m.Block, Fetched: 10 * (1 + sample)}
				switch {
				case rule == NoRule && n.Heavy():
					x.Waiting = 20 * (sample + 1)
				case rule == NoRule:
					x.Waiting = 1
				default:
					x.Fetched += sample * sample / 6
				}
				s = append(s, x)
			}
			run.Nodes = append(run.Nodes, s)
			f := sim.MeshFigures{NodeTime: time.Duration(sample+1) * 24 * time.Minute}
			f.Messages, f.Bytes = [3]int{100, 40, 10}, [3]int{1000, 400, 100}
			run.Figures = append(run.Figures, f)
		}
		r.Balance = append(r.Balance, run)
	}
	return r
}

// TestMeshJudge: figures as the paper reports them are seen; each statement is not where its figures go another way,
// and only that.
func TestMeshJudge(t *testing.T) {
	m := MeshOfPaper()
	last := func(r *MeshResult, rule Rule) ([]sim.NodeSample, *sim.MeshFigures) {
		run := &r.Balance[rule]
		return run.Nodes[39], &run.Figures[39]
	}
	each := func(r *MeshResult, rule Rule, f func(sample, node int, s *sim.NodeSample)) {
		for sample, nodes := range r.Balance[rule].Nodes {
			for node := range nodes {
				f(sample, node, &nodes[node])
			}
		}
	}
	for _, c := range []struct {
		change func(r *MeshResult)
		want   []string
	}{
		{func(*MeshResult) {}, nil},
		{func(r *MeshResult) { r.Scaling.Nodes[2][0].Fetched += 9 }, []string{"speed is stable while no node comes"}},
		{func(r *MeshResult) { // the last node fetches nothing
			for i := range 5 {
				r.Scaling.Nodes[15+i][0].Fetched -= 18 * (i + 1)
			}
		}, []string{"speed rises with each join", "speed is linear in the number of nodes"}},
		{func(r *MeshResult) { s, _ := last(r, NoRule); s[3].Waiting = 300 },
			[]string{"without balancing, nodes to which more comes than they fetch get heavier all the time"}},
		{func(r *MeshResult) {
			each(r, NoRule, func(_, node int, s *sim.NodeSample) {
				if node == 0 {
					s.Waiting = 110
				}
			})
		}, []string{"without balancing, the others are light all the time", "load of light nodes rises"}},
		{func(r *MeshResult) { s, _ := last(r, ByKumo); s[3].Waiting = 2000 },
			[]string{"load of heavy nodes falls much", "all load ratios come to be around 1"}},
		{func(r *MeshResult) {
			each(r, ByKumo, func(_, node int, s *sim.NodeSample) {
				if node == 5 {
					s.Waiting = 8
				}
			})
		}, []string{"load ratios of light nodes come to be around 1", "all load ratios come to be around 1"}},
		{func(r *MeshResult) { r.Balance[ByKumo].Nodes[7][4].Level = 1 }, []string{"no light node tips into heavy"}},
		{func(r *MeshResult) {
			each(r, ByKumo, func(sample, _ int, s *sim.NodeSample) { s.Fetched = 12 * (1 + sample) })
		}, []string{"output rises by up to 33.3 %", "output rises more with time"}},
		{func(r *MeshResult) { _, f := last(r, ByKumo); f.Messages[sim.OverlayMessage] += 20 },
			[]string{"communication is nearly the same with balancing"}},
		{func(r *MeshResult) { _, f := last(r, ByKumo); f.Messages = [3]int{60, 70, 20} },
			[]string{"most of it is for routing"}},
	} {
		r := asMeshReported(&m)
		c.change(&r)
		var got []string
		all := m.Judge(&r)
		for _, s := range all {
			if !s.Seen && !strings.HasSuffix(s.Of, "rule paper") {
				got = append(got, s.Statement)
			}
		}
		if !slices.Equal(got, c.want) || len(all) != 23 {
			t.Errorf("%d statements; not seen: %s\nwant %s", len(all), strings.Join(got, "; "), strings.Join(c.want, "; "))
		}
	}
}

// TestMeshScale: look-ups take more hops among more nodes, and are right; the same seed is the same table.
func TestMeshScale(t *testing.T) {
	seed := rand.Uint64N(1e6) + 1
	t.Logf("seed %d", seed)
	s := MeshScales()
	s.Nodes, s.FullUpTo, s.Seed, s.LookUps = []int{10, 100}, 10, seed, 300
	rows, err := s.Rows(t.Context(), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	few, many := rows[0], rows[1]
	if few.Correct < 0.5 || many.Correct < 0.9 || many.Hops < 1 || many.Hops > 3 || many.Asked < many.Hops ||
		few.Contacts < 8 || few.Contacts > 9 || many.Contacts < 20 || many.Contacts > 99 ||
		many.Churn.Bytes <= many.Quiet.Bytes {
		t.Errorf("%+v\n%+v", few, many)
	}
	c := few.Crawl
	if !few.RanFull || many.RanFull || c.PageMessages[sim.MeshMessage] < 3 || c.PageMessages[sim.LinksMessage] < 1 ||
		c.Known < 10 || c.Rest.Messages <= 0 {
		t.Errorf("%+v", few)
	}
	s.Nodes = []int{10}
	again, err := s.Rows(t.Context(), func(int, int) {})
	if err != nil || again[0] != few {
		t.Errorf("%+v, %v; before %+v", again, err, few)
	}
}
