package model

import "math"

// inputs is how many figures the network is shown: a machine's facts, and the number of URLs at index urls.
const (
	inputs = facts + 1
	urls   = facts
)

// A span is where the logarithms of a figure have been so far. It only grows; Min is above Max before the first.
type span struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

var noSpan = span{Min: 1, Max: 0}

func (s *span) add(v float64) {
	if s.Min > s.Max {
		*s = span{v, v}
	}
	s.Min, s.Max = min(s.Min, v), max(s.Max, v)
}

// minWidth is the width of a span whose figures, 5 % apart at most, count as one.
const minWidth = 0.05

// width is 0 where all figures were the same.
func (s span) width() float64 {
	if w := s.Max - s.Min; w > minWidth {
		return w
	}
	return 0
}

// scale maps the span to 0 to 1, and what is outside of it to the nearer end.
func (s span) scale(v float64) float64 {
	if s.width() == 0 {
		return 0
	}
	return (min(max(v, s.Min), s.Max) - s.Min) / s.width()
}

// A scaling makes samples into examples for a network.
type scaling struct {
	Inputs  [inputs]span `json:"inputs"`
	Seconds span         `json:"seconds"`
}

func newScaling() (c scaling) {
	for i := range c.Inputs {
		c.Inputs[i] = noSpan
	}
	c.Seconds = noSpan
	return c
}

// add makes the spans reach the sample.
func (c *scaling) add(s Sample) {
	for i, f := range s.facts() {
		if f > 0 {
			c.Inputs[i].add(math.Log(f))
		}
	}
	c.Inputs[urls].add(math.Log(float64(s.URLs)))
	c.Seconds.add(math.Log(s.Seconds))
}

// machine is the input for no URLs yet.
func (c *scaling) machine(m Machine) (x [inputs]float64) {
	for i, f := range m.facts() {
		switch {
		case f > 0:
			x[i] = c.Inputs[i].scale(math.Log(f))
		case c.Inputs[i].width() > 0:
			x[i] = 0.5
		}
	}
	return x
}

func (c *scaling) urls(n float64) float64 { return c.Inputs[urls].scale(math.Log(n)) }

func (c *scaling) example(s Sample) example {
	e := example{x: c.machine(s.Machine), y: (math.Log(s.Seconds) - c.Seconds.Min) / c.seconds()}
	e.x[urls] = c.urls(float64(s.URLs))
	return e
}

// seconds is by how much the logarithm of the seconds grows while the network's output grows by one.
func (c *scaling) seconds() float64 { return max(c.Seconds.Max-c.Seconds.Min, 0.5) }

// unscale is the time, in seconds, that an output stands for.
func (c *scaling) unscale(output float64) float64 {
	return math.Exp(c.Seconds.Min + output*c.seconds())
}
