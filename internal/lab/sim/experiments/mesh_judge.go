package experiments

import (
	"fmt"
	"math"
	"slices"
	"time"

	"kumo/internal/lab/sim"
	"kumo/internal/view/results"
)

// Interpretations of the paper's words where it gives no numbers.
const (
	stable       = 0.1   // differs from the mean by less than this share
	stepsUp      = 0.9   // rises by at least this share of what the new nodes can fetch
	linear       = 0.99  // minimum R² of a line
	reduced      = 0.5   // is at most this share of the former value
	aroundOne    = 0.5   // differs from 1 by at most this
	paperRise    = 0.333 // "at most 33.3 % more": reached in some samples
	nearlyEqual  = 0.1
	windowOfRise = 5 // samples over which a rise is measured
)

// Judge evaluates all statements.
func (m *Mesh) Judge(r *MeshResult) []results.Statement {
	j := meshJudge{m: m}
	j.scaling(m.Steps(r))
	none := &r.Balance[NoRule]
	j.without(none)
	for rule := ByPaper; rule < ruleCount; rule++ {
		j.with(&r.Balance[rule], none)
	}
	for rule := ByPaper; rule < ruleCount; rule++ {
		j.overhead(&r.Balance[rule], none)
	}
	j.history(r.History)
	return j.judged
}

type meshJudge struct {
	m *Mesh
	judged
}

// add adds a statement about runs with a rule. NoRule stands for runs without balancing, and for statements that are
// not about balancing.
func (j *meshJudge) add(experiment int, rule Rule, text string, seen bool, numbers, why string) {
	of := fmt.Sprintf("experiment %d", experiment)
	if rule != NoRule {
		of += fmt.Sprintf(", rule %v", rule)
	}
	j.judged.add(of, text, seen, numbers, why)
}

// A MeshStep has the samples of experiment 1 with the same number of nodes.
type MeshStep struct {
	Nodes   int
	Samples []float64 // URLs fetched by all nodes in each sample
}

// Mean returns the mean of the samples.
func (s *MeshStep) Mean() float64 {
	mean, _ := meanAndDeviation(s.Samples)
	return mean
}

// Steps groups experiment 1's samples by the number of nodes.
func (m *Mesh) Steps(r *MeshResult) (steps []MeshStep) {
	before := 0
	for _, nodes := range r.Scaling.Nodes {
		all := 0
		for _, n := range nodes {
			all += n.Fetched
		}
		if len(steps) == 0 || steps[len(steps)-1].Nodes != len(nodes) {
			steps = append(steps, MeshStep{Nodes: len(nodes)})
		}
		last := &steps[len(steps)-1]
		last.Samples = append(last.Samples, float64(all-before))
		before = all
	}
	return steps
}

func (j *meshJudge) scaling(steps []MeshStep) {
	each := j.m.Speed * j.m.Sample.Seconds()
	var xs, ys, perNode []float64
	off, least := 0.0, math.Inf(1)
	for i, s := range steps {
		mean := s.Mean()
		for _, n := range s.Samples {
			off = max(off, math.Abs(n/mean-1))
		}
		if i > 0 {
			least = min(least, (mean-steps[i-1].Mean())/(each*float64(s.Nodes-steps[i-1].Nodes)))
		}
		xs, ys, perNode = append(xs, float64(s.Nodes)), append(ys, mean), append(perNode, mean/float64(s.Nodes))
	}
	j.add(1, NoRule, "speed is stable while no node comes", off <= stable,
		fmt.Sprintf("samples differ by at most %.1f %% from the mean of their step", 100*off),
		"some nodes have nothing to fetch")
	j.add(1, NoRule, "speed rises with each join", least >= stepsUp,
		fmt.Sprintf("by at least %.0f %% of what the nodes that come can fetch", 100*least),
		"new nodes do not have enough to fetch")
	r2 := fit(xs, ys)
	j.add(1, NoRule, "speed is linear in the number of nodes", r2 >= linear,
		fmt.Sprintf("%s URLs a node and sample with %s nodes, R² = %.4f", listed(perNode, "%.1f"), listed(xs, "%.0f"), r2),
		"some nodes have nothing to fetch")
}

// fit returns R² of the least-squares line.
func fit(xs, ys []float64) float64 {
	slope := slopeOf(xs, ys)
	mx, _ := meanAndDeviation(xs)
	my, _ := meanAndDeviation(ys)
	left, all := 0.0, 0.0
	for i := range xs {
		d := ys[i] - my - slope*(xs[i]-mx)
		left += float64(d * d)
		all += float64((ys[i] - my) * (ys[i] - my))
	}
	if all == 0 {
		return 0
	}
	return 1 - left/all
}

// laterHalf returns the mean load ratio of each node of a kind, over the second half of a run.
func (j *meshJudge) laterHalf(r *MeshRun, kind func(MeshNode) bool) []float64 {
	var sum []float64
	from := len(r.Nodes) / 2
	for i := from; i < len(r.Nodes); i++ {
		all := j.m.ratios(r, i, kind)
		if sum == nil {
			sum = make([]float64, len(all))
		}
		for k, u := range all {
			sum[k] += u / float64(len(r.Nodes)-from)
		}
	}
	return sum
}

func (j *meshJudge) without(none *MeshRun) {
	last := len(none.Nodes) - 1
	half, end := j.m.ratios(none, last/2, MeshNode.Heavy), j.m.ratios(none, last, MeshNode.Heavy)
	diverge := true
	for i := range end {
		diverge = diverge && end[i] > 1 && end[i] > 1.5*half[i]
	}
	j.add(2, NoRule, "without balancing, heavy nodes get heavier all the time", diverge,
		fmt.Sprintf("u after half of the time %s, at the end %s", listed(half, "%.1f"), listed(end, "%.1f")),
		"some do not within this time")
	light := slices.Max(j.laterHalf(none, lightNode))
	j.add(2, NoRule, "without balancing, the other nodes stay light", light < 1,
		fmt.Sprintf("mean u of the second half is at most %.2f", light), "more URLs arrive at one of them than configured")
}

func (j *meshJudge) with(r, none *MeshRun) {
	m, last := j.m, len(r.Nodes)-1
	_, heavy := m.Waiting(r)
	_, before := m.Waiting(none)
	part := float64(heavy) / float64(max(before, 1))
	later := j.laterHalf(r, MeshNode.Heavy)
	j.add(2, r.Rule, "load of heavy nodes falls much", part <= reduced,
		fmt.Sprintf("%d URLs are pending at them at the end, %.0f %% of %d without balancing", heavy, 100*part, before),
		fmt.Sprintf("load that no bucket has room for stays where it is: u %s in the second half", listed(later, "%.1f")))
	if r.Rule != ByTime { // otherwise there are no areas and levels
		j.ratios(r, none)
	}
	rise, best := m.Rise(r, none, 0, last+1), math.Inf(-1)
	for i := 0; i+windowOfRise <= last+1; i++ {
		best = max(best, m.Rise(r, none, i, i+windowOfRise))
	}
	j.add(2, r.Rule, "output rises by up to 33.3 %", best >= paperRise,
		fmt.Sprintf("by %.1f %% in total, by up to %.1f %% over %v; if all nodes fetched all the time: %.1f %%", 100*rise,
			100*best, m.Sample*windowOfRise, 100*m.Ceiling()), "light nodes get too little, too late")
	third := (last + 1) / 3
	a, b := m.Rise(r, none, 0, third), m.Rise(r, none, last+1-third, last+1)
	j.add(2, r.Rule, "output rises more with time", b > a,
		fmt.Sprintf("by %.1f %% in the first third of the time, by %.1f %% in the last", 100*a, 100*b),
		"heavy nodes are too heavy for any bucket by then")
}

// ratios judges the load ratios and levels of a run.
func (j *meshJudge) ratios(r, none *MeshRun) {
	m, last := j.m, len(r.Nodes)-1
	light, was := j.laterHalf(r, lightNode), j.laterHalf(none, lightNode)
	rises, near := true, true
	for i, u := range light {
		rises = rises && u > was[i]
		near = near && math.Abs(u-1) <= aroundOne
	}
	j.add(2, r.Rule, "load of light nodes rises", rises,
		fmt.Sprintf("u %s in the second half, without balancing %s", listed(light, "%.2f"), listed(was, "%.2f")),
		"some of them receive no more load")
	j.add(2, r.Rule, "load ratios of light nodes approach 1", near,
		fmt.Sprintf("u %s in the second half", listed(light, "%.2f")), "some of them receive no more load")
	all := j.m.ratios(r, last, anyNode)
	far := 0.0
	for _, u := range all {
		far = max(far, math.Abs(u-1))
	}
	atFull := "the areas are never full"
	if full := m.Full(r); full >= 0 {
		atFull = fmt.Sprintf("after %.0f min, when the areas are full, %s",
			(m.Sample * time.Duration(full+1)).Minutes(), listed(j.m.ratios(r, full, anyNode), "%.1f"))
	}
	j.add(2, r.Rule, "all load ratios approach 1", far <= aroundOne,
		fmt.Sprintf("u at the end %s; %s", listed(all, "%.1f"), atFull),
		fmt.Sprintf("%.3f URLs a second arrive beyond what all nodes can fetch, and no rule removes them", m.Surplus()))
	most := m.MaxLightLevel(r)
	j.add(2, r.Rule, "no light node becomes heavy", most <= 0, fmt.Sprintf("the highest level of one is %d", most),
		"arriving URLs filled room that was already given away")
}

// A Traffic has the messages and bytes of one kind, or of all: per node and second, and per page fetched.
type Traffic struct {
	Kind                    string
	Messages, Bytes         float64 // per node and second
	PageMessages, PageBytes float64
}

// Traffic returns what the nodes of a run have sent: of each kind, and in total.
func (m *Mesh) Traffic(r *MeshRun) (all []Traffic) {
	last := len(r.Nodes) - 1
	f := &r.Figures[last]
	seconds, pages := f.NodeTime.Seconds(), float64(max(m.Fetched(r, last+1), 1))
	sum := Traffic{Kind: "all"}
	for k, kind := range sim.MessageKinds {
		n, b := float64(f.Messages[k]), float64(f.Bytes[k])
		t := Traffic{kind, n / seconds, b / seconds, n / pages, b / pages}
		all = append(all, t)
		sum.Messages += t.Messages
		sum.Bytes += t.Bytes
		sum.PageMessages += t.PageMessages
		sum.PageBytes += t.PageBytes
	}
	return append(all, sum)
}

func (j *meshJudge) overhead(r, none *MeshRun) {
	with, without := j.m.Traffic(r), j.m.Traffic(none)
	a, b := with[len(with)-1], without[len(without)-1]
	messages, bytes := a.Messages/b.Messages-1, a.Bytes/b.Bytes-1
	j.add(3, r.Rule, "communication is nearly the same with balancing",
		math.Abs(messages) <= nearlyEqual && bytes <= nearlyEqual,
		fmt.Sprintf("%+.0f %% messages and %+.0f %% bytes per node and second; %+.0f %% and %+.0f %% per page", 100*messages,
			100*bytes, 100*(a.PageMessages/b.PageMessages-1), 100*(a.PageBytes/b.PageBytes-1)),
		"more pages are fetched, and each takes its messages")
	share := with[sim.OverlayMessage].Messages / a.Messages
	j.add(3, r.Rule, "most of it is for routing", share > 0.5,
		fmt.Sprintf("%.0f %% of messages are the overlay's, %.0f %% of bytes", 100*share,
			100*with[sim.OverlayMessage].Bytes/a.Bytes),
		"links are claimed, dispatched and marked as fetched, and pending hosts are requested")
}
