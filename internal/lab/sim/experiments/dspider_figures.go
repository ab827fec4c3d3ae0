package experiments

import (
	"fmt"
	"math"
	"time"
)

// Figures are what one run came to.
type Figures struct {
	Time        float64 // T until nothing was fetched any more
	Speed       float64 // f a T, of all nodes
	Srcuse      float64 // f a T and node
	Communicate float64 // host requests that the control unit got and sent, a T
	Duplicate   float64 // files that were fetched although they had been, of those that were fetched

	Downloads, Distinct, HostRequests, Links, Probes int

	Missed      float64 // part of the files that was never fetched
	Unreachable float64 // part of the hosts that no node reaches within the timeout
	Unfound     float64 // part that could be reached, but is named by no file that could be fetched

	Delay                             float64 // T to connect, of files that were fetched
	Connect, Transfer, TimedOut, Idle float64 // parts of the nodes' time
	LinkUse                           float64 // part of the bandwidth that was used
}

func (w *spiderWorld) figures() Figures {
	s, n, t := &w.sum, float64(len(w.nodes)), inTicks(w.lastActivity)
	f := Figures{Time: t, Downloads: s.downloads, Distinct: s.distinct, HostRequests: s.hostRequests, Links: s.links,
		Probes: s.probes}
	if s.downloads > 0 {
		f.Speed, f.Communicate = s.units/t, float64(s.hostRequests)/t
		f.Srcuse = f.Speed / n
		f.Duplicate = float64(s.downloads-s.distinct) / float64(s.downloads)
		f.Delay = inTicks(s.connecting) / float64(s.downloads)
	}
	part := func(d time.Duration) float64 { return inTicks(d) / (t * n * float64(len(w.nodes[0].places))) }
	if t > 0 {
		f.Connect, f.Transfer, f.TimedOut = part(s.connecting), part(s.moving), part(s.timedOut)
		f.Idle = max(0, 1-f.Connect-f.Transfer-f.TimedOut)
		width := 0.0
		for _, p := range w.links {
			width += p.bandwidth
			f.LinkUse += p.moved
		}
		f.LinkUse /= width * t
	}
	f.Missed = 1 - float64(s.distinct)/float64(len(w.web.size))
	f.Unreachable, f.Unfound = w.outOfReach()
	return f
}

// outOfReach are the parts of hosts that the paper's mode cannot fetch: too far from each node, and named only by such.
func (w *spiderWorld) outOfReach() (unnear, unfound float64) {
	near := func(h int32) bool { return w.web.anyReaches(h, w.setting.Timeout) }
	for h, found := range w.web.findHosts(near) {
		switch {
		case !near(int32(h)):
			unnear++
		case !found:
			unfound++
		}
	}
	hosts := float64(len(w.web.names))
	return unnear / hosts, unfound / hosts
}

// A Measure is one of the paper's four.
type Measure struct {
	Name  string
	Unit  string  // the paper's
	Scale float64 // by which what Of returns is in that unit
	Of    func(*Figures) float64
}

// Measures are in the order of the tables.
var Measures = []Measure{
	{"speed", "f/T", 1, func(f *Figures) float64 { return f.Speed }},
	{"srcuse", "f/10T", 10, func(f *Figures) float64 { return f.Srcuse }},
	{"communicate", "1/100T", 100, func(f *Figures) float64 { return f.Communicate }},
	{"duplicate", "1/10,000", 10_000, func(f *Figures) float64 { return f.Duplicate }},
}

// PiecesEach are the values of all runs.
func (p *Point) Each(of func(*Figures) float64) []float64 {
	all := make([]float64, len(p.Runs))
	for i := range p.Runs {
		all[i] = of(&p.Runs[i])
	}
	return all
}

// Mean and standard deviation over the seeds, in the measure's unit.
func (p *Point) Mean(m Measure) (mean, deviation float64) {
	mean, deviation = meanAndDeviation(p.Each(m.Of))
	return mean * m.Scale, deviation * m.Scale
}

// meanAndDeviation of a sample; the deviation is 0 for a single value.
func meanAndDeviation(values []float64) (mean, deviation float64) {
	n := float64(len(values))
	for _, v := range values {
		mean += v
	}
	mean /= n
	if n < 2 {
		return mean, 0
	}
	for _, v := range values {
		d := v - mean
		deviation += float64(d * d)
	}
	return mean, math.Sqrt(deviation / (n - 1))
}

// FigureTable is one experiment's points of a mode and loading: mean and standard deviation of the paper's measures in
// the paper's units, then means of what explains them.
func FigureTable(points []Point) Table {
	t := newTable(FigureName(points[0].Setting), "place", "nodes", "timeout_T", "runs")
	for _, m := range Measures {
		t.Lines[0] = append(t.Lines[0], m.Name, m.Name+"_deviation")
	}
	for _, e := range explaining {
		t.Lines[0] = append(t.Lines[0], e.name)
	}
	for i := range points {
		p := &points[i]
		line := []any{p.Network, p.Nodes, p.Timeout, len(p.Runs)}
		for _, m := range Measures {
			mean, deviation := p.Mean(m)
			line = append(line, mean, deviation)
		}
		for _, e := range explaining {
			mean, _ := meanAndDeviation(p.Each(e.of))
			line = append(line, mean)
		}
		t.add(line...)
	}
	return t
}

var explaining = []struct {
	name string
	of   func(*Figures) float64
}{
	{"time_T", func(f *Figures) float64 { return f.Time }},
	{"downloads", func(f *Figures) float64 { return float64(f.Downloads) }},
	{"distinct", func(f *Figures) float64 { return float64(f.Distinct) }},
	{"host_requests", func(f *Figures) float64 { return float64(f.HostRequests) }},
	{"links_sent", func(f *Figures) float64 { return float64(f.Links) }},
	{"probes", func(f *Figures) float64 { return float64(f.Probes) }},
	{"files_missed", func(f *Figures) float64 { return f.Missed }},
	{"hosts_out_of_reach", func(f *Figures) float64 { return f.Unreachable }},
	{"hosts_not_found", func(f *Figures) float64 { return f.Unfound }},
	{"connect_T", func(f *Figures) float64 { return f.Delay }},
	{"connecting", func(f *Figures) float64 { return f.Connect }},
	{"transferring", func(f *Figures) float64 { return f.Transfer }},
	{"timeouts", func(f *Figures) float64 { return f.TimedOut }},
	{"without_work", func(f *Figures) float64 { return f.Idle }},
	{"bandwidth_used", func(f *Figures) float64 { return f.LinkUse }},
}

// Figure is the paper's figure 8 or 9 for the points of one experiment, mode and loading: its four measures in its
// units.
func Figure(points []Point) *Picture {
	pic := &Picture{Columns: 2}
	for _, m := range Measures {
		panel := Panel{Title: fmt.Sprintf("%s (%s)", m.Name, m.Unit), Y: m.Unit, X: "nodes"}
		if points[0].Experiment == 2 {
			panel.X = "timeout (T)"
		}
		for i := range points {
			p := &points[i]
			mean, deviation := p.Mean(m)
			c := panel.Curves.add(p.Network.String(), p.X(), mean)
			c.Deviations = append(c.Deviations, deviation)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

// FigureName is the name of a figure's files, without what says their format.
func FigureName(s Setting) string {
	return fmt.Sprintf("experiment%d-%v-%v", s.Experiment, s.Mode, s.Loading)
}

// InFigures are the points by figure, in order.
func InFigures(points []Point) (all [][]Point) {
	for i, p := range points {
		if i == 0 || FigureName(p.Setting) != FigureName(points[i-1].Setting) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}
