package experiments

import (
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

	Missed  float64 // part of the files that was never fetched
	Unnear  float64 // part of the hosts that no node reaches within the timeout
	Unfound float64 // part that could be reached, but is named by no file that could be fetched

	Delay                             float64 // T to connect, of files that were fetched
	Connect, Transfer, TimedOut, Idle float64 // parts of the nodes' time
	LinkUse                           float64 // part of the bandwidth that was used
}

func (w *spiderWorld) figures() Figures {
	s, n, t := &w.sum, float64(len(w.nodes)), inTicks(w.ended)
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
		for _, p := range w.pipes {
			width += p.width
			f.LinkUse += p.moved
		}
		f.LinkUse /= width * t
	}
	f.Missed = 1 - float64(s.distinct)/float64(len(w.web.size))
	f.Unnear, f.Unfound = w.outOfReach()
	return f
}

// outOfReach are the parts of hosts that the paper's mode cannot fetch: too far from each node, and named only by such.
func (w *spiderWorld) outOfReach() (unnear, unfound float64) {
	near := func(h int32) bool { return w.web.anyReaches(h, w.set.Timeout) }
	for h, found := range w.web.found(near) {
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

// Each are the values of all runs.
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
