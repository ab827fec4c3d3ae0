package experiments

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"kumo/internal/view/results"
)

// What words of the paper are taken to mean; it gives no numbers.
const (
	slightly = 1. / 3 // changes less than this part of its mean, from one end of the axis to the other
	flatly   = 0.01   // less than this is no change, nor is what is less than two standard errors
	fast     = 0.5    // changes at least by this part of its mean
	farAbove = 2      // is at least so many times as large, on average
)

// Judge judges all statements by the points, for each mode and loading. Those of an experiment without two points are
// left out.
func Judge(points []Point) (all []results.Statement) {
	for _, mode := range []Mode{AsPaper, AsKumo} {
		for _, loading := range []Loading{OneByOne, Saturated} {
			for experiment := 1; experiment <= 2; experiment++ {
				j := judge{points, Setting{Experiment: experiment, Mode: mode, Loading: loading}, nil}
				if lan, wan := j.curve(LAN), j.curve(WAN); len(lan) < 2 || len(wan) < 2 {
					continue
				}
				if experiment == 1 {
					j.nodes()
				} else {
					j.timeouts()
				}
				all = append(all, j.judged...)
			}
		}
	}
	return all
}

// A judge judges one figure.
type judge struct {
	points []Point
	set    Setting
	judged
}

func (j *judge) nodes() {
	j.direction("duplicate grows fast with nodes in the WAN", duplicate, WAN, +1, fast, math.Inf(1))
	j.above("duplicate is far above the LAN's in the WAN", duplicate, farAbove)
	j.direction("speed rises with nodes in the LAN", speed, LAN, +1, 0, math.Inf(1))
	j.direction("speed rises with nodes in the WAN", speed, WAN, +1, 0, math.Inf(1))
	j.steeper("speed rises more steeply in the WAN than in the LAN", speed, WAN, LAN, +1)
	j.direction("srcuse falls slightly with nodes in the LAN", srcuse, LAN, -1, 0, slightly)
	j.direction("srcuse rises slightly with nodes in the WAN", srcuse, WAN, +1, 0, slightly)
}

func (j *judge) timeouts() {
	j.above("duplicate is mostly above the LAN's in the WAN", duplicate, 1)
	for _, p := range []NetworkKind{LAN, WAN} {
		j.direction(fmt.Sprintf("srcuse falls slightly with the timeout in the %v", p), srcuse, p, -1, 0, slightly)
		j.direction(fmt.Sprintf("speed falls slightly with the timeout in the %v", p), speed, p, -1, 0, slightly)
		j.direction(fmt.Sprintf("communicate falls with the timeout in the %v", p), communicate, p, -1, 0, math.Inf(1))
	}
	j.steeper("communicate falls more steeply in the LAN than in the WAN", communicate, LAN, WAN, -1)
}

// The measures, by their place in Measures.
const (
	speed = iota
	srcuse
	communicate
	duplicate
)

// curve are the points of a place, in the order of the axis.
func (j *judge) curve(p NetworkKind) (c []Point) {
	for _, point := range j.points {
		s := point.Setting
		if s.Experiment == j.set.Experiment && s.Mode == j.set.Mode && s.Loading == j.set.Loading && s.Network == p {
			c = append(c, point)
		}
	}
	slices.SortFunc(c, func(a, b Point) int { return int(math.Copysign(1, a.X()-b.X())) })
	return c
}

func (j *judge) add(text string, seen bool, numbers, why string) {
	j.judged.add(fmt.Sprintf("experiment %d, mode %v, %s", j.set.Experiment, j.set.Mode, j.set.Loading.LongName()), text,
		seen, numbers, why)
}

// direction judges whether a measure goes a way, by at least and at most so large a part of its mean.
func (j *judge) direction(text string, measure int, p NetworkKind, sign, least, most float64) {
	c, m := j.curve(p), Measures[measure]
	t := trendOf(c, m)
	numbers := fmt.Sprintf("%s: %s", endValues(c, m), t)
	way := t.sign()
	switch {
	case t.none:
		j.add(text, false, numbers, "there is none")
	case way != sign:
		j.add(text, false, numbers, fmt.Sprintf("it %s; %s", t.verb(), timeUse(c)))
	case math.Abs(t.change) > most:
		j.add(text, false, numbers, fmt.Sprintf("it does, but by more than %.0f %%; %s", 100*most, timeUse(c)))
	case math.Abs(t.change) < least:
		j.add(text, false, numbers, fmt.Sprintf("it does, but by less than %.0f %%; %s", 100*least, timeUse(c)))
	default:
		j.add(text, true, numbers, "")
	}
}

// above judges whether the WAN's values are so many times the LAN's, on average and, for once, at all points but one.
func (j *judge) above(text string, measure int, times float64) {
	m, lan, wan := Measures[measure], j.curve(LAN), j.curve(WAN)
	var ratios []float64
	higher := 0
	for i := range min(len(lan), len(wan)) {
		l, _ := lan[i].Mean(m)
		w, _ := wan[i].Mean(m)
		if l == 0 {
			j.add(text, false, fmt.Sprintf("WAN %s, LAN %s", endValues(wan, m), endValues(lan, m)), "there is none in the LAN")
			return
		}
		ratios = append(ratios, w/l)
		if w > l {
			higher++
		}
	}
	mean, _ := meanAndDeviation(ratios)
	numbers := fmt.Sprintf("WAN / LAN = %s, %.2f on average", listed(ratios, "%.2f"), mean)
	why := fmt.Sprintf("it is %.2f times, not %g; in the LAN %s; in the WAN %s", mean, times, timeUse(lan), timeUse(wan))
	j.add(text, mean >= times && higher >= len(ratios)-1, numbers, why)
}

// steeper judges whether a measure changes more, in its own unit, in one place than in the other, in the direction of
// sign.
func (j *judge) steeper(text string, measure int, here, there NetworkKind, sign float64) {
	m, a, b := Measures[measure], j.curve(here), j.curve(there)
	x, y := trendOf(a, m), trendOf(b, m)
	more := make([]float64, 0, len(x.slopes)) // seed by seed, because the web is the same
	for i := range min(len(x.slopes), len(y.slopes)) {
		more = append(more, sign*(x.slopes[i]-y.slopes[i]))
	}
	mean, deviation := meanAndDeviation(more)
	numbers := fmt.Sprintf("%+.3g in the %v, %+.3g in the %v %s per %s", x.slope, here, y.slope, there, m.Unit, j.axis())
	sure := mean > max(2*deviation/math.Sqrt(float64(len(more))), flatly*math.Abs(y.slope))
	why := fmt.Sprintf("the difference is %+.3g ± %.2g; in the %v %s; in the %v %s", mean, deviation, here, timeUse(a),
		there, timeUse(b))
	j.add(text, sure && x.sign() == sign, numbers, why)
}

func (j *judge) axis() string {
	if j.set.Experiment == 1 {
		return "node"
	}
	return "T"
}

// A trend is a line through a curve.
type trend struct {
	slopes    []float64 // of each seed, in the measure's unit
	slope     float64   // their mean
	change    float64   // from end to end of the axis, divided by the measure's mean
	threshold float64   // less than this part is no trend
	none      bool      // all is 0
}

func trendOf(c []Point, m Measure) (t trend) {
	xs, sum, span := make([]float64, len(c)), 0.0, 0.0
	for i := range c {
		xs[i] = c[i].X()
		mean, _ := c[i].Mean(m)
		sum += mean / float64(len(c))
	}
	span = xs[len(xs)-1] - xs[0]
	ys := make([]float64, len(c))
	for seed := range c[0].Runs {
		for i := range c {
			ys[i] = m.Scale * m.Of(&c[i].Runs[seed])
		}
		t.slopes = append(t.slopes, slopeOf(xs, ys))
	}
	var deviation float64
	t.slope, deviation = meanAndDeviation(t.slopes)
	t.threshold = flatly
	if t.none = sum == 0; !t.none {
		t.change = t.slope * span / sum
		t.threshold = max(flatly, 2*deviation/math.Sqrt(float64(len(t.slopes)))*span/sum)
	}
	return t
}

// slopeOf is that of the line with the least squares.
func slopeOf(xs, ys []float64) float64 {
	mx, _ := meanAndDeviation(xs)
	my, _ := meanAndDeviation(ys)
	above, below := 0.0, 0.0
	for i := range xs {
		above += float64((xs[i] - mx) * (ys[i] - my))
		below += float64((xs[i] - mx) * (xs[i] - mx))
	}
	if below == 0 {
		return 0
	}
	return above / below
}

// sign is +1 where the trend rises, -1 where it falls, and 0 where it is flat.
func (t trend) sign() float64 {
	if math.Abs(t.change) < t.threshold {
		return 0
	}
	return math.Copysign(1, t.change)
}

func (t trend) verb() string {
	return map[float64]string{0: "is flat", 1: "rises", -1: "falls"}[t.sign()]
}

func (t trend) String() string {
	return fmt.Sprintf("%+.0f %% ± %.0f %%", 100*t.change, 100*t.threshold)
}

// ends are a measure's first and last values.
func endValues(c []Point, m Measure) string {
	a, _ := c[0].Mean(m)
	b, _ := c[len(c)-1].Mean(m)
	return fmt.Sprintf("%.3g to %.3g %s", a, b, m.Unit)
}

func listed(values []float64, format string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = fmt.Sprintf(format, v)
	}
	return strings.Join(all, ", ")
}

// timeUse says what nodes did with their time at both ends of the axis: what a measure's change comes from.
func timeUse(c []Point) string {
	first, last := &c[0], &c[len(c)-1]
	var all []string
	for _, e := range explaining[len(explaining)-5:] { // parts of the nodes' time, and of the bandwidth
		a, _ := meanAndDeviation(first.Each(e.of))
		b, _ := meanAndDeviation(last.Each(e.of))
		all = append(all, fmt.Sprintf("%s %.1f to %.1f %%", strings.ReplaceAll(e.name, "_", " "), 100*a, 100*b))
	}
	delay := func(f *Figures) float64 { return f.Delay }
	a, _ := meanAndDeviation(first.Each(delay))
	b, _ := meanAndDeviation(last.Each(delay))
	return strings.Join(append(all, fmt.Sprintf("a connection %.2f to %.2fT", a, b)), ", ")
}
