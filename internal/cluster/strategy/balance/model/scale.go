package model

import "math"

// inputs is the number of inputs of the network: a machine's figures, then the number of URLs at index urls.
const (
	inputs = facts + 1
	urls   = facts
)

// A span is the range of a figure so far, usually of its logarithm. It never shrinks; before the first value Min is
// above Max.
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

// minWidth is the width below which a span counts as a single figure: a difference of 5 %.
const minWidth = 0.05

// width returns the width of the span; 0 if all figures are about the same.
func (s span) width() float64 {
	if w := s.Max - s.Min; w > minWidth {
		return w
	}
	return 0
}

// scale maps the span to 0 to 1, and values outside of it to the nearer end.
func (s span) scale(v float64) float64 {
	if s.width() == 0 {
		return 0
	}
	return (min(max(v, s.Min), s.Max) - s.Min) / s.width()
}

// A scaling converts samples to examples for a network.
type scaling struct {
	Inputs  [inputs]span `json:"inputs"`
	Seconds span         `json:"seconds"`
	linear  bool         // as in the paper; else of logarithms
}

func newScaling(linear bool) (c scaling) {
	c.linear = linear
	for i := range c.Inputs {
		c.Inputs[i] = noSpan
	}
	c.Seconds = noSpan
	return c
}

// of returns the value that is scaled.
func (c *scaling) of(v float64) float64 {
	if c.linear {
		return v
	}
	return math.Log(v)
}

// input scales a value for an input. With a linear scale, values may be outside of the span, as in the paper.
func (c *scaling) input(i int, v float64) float64 {
	s := c.Inputs[i]
	if c.linear && s.width() > 0 {
		return (v - s.Min) / s.width()
	}
	return s.scale(c.of(v))
}

// add extends the spans to include the sample.
func (c *scaling) add(s Sample) {
	for i, f := range s.facts() {
		if f > 0 {
			c.Inputs[i].add(c.of(f))
		}
	}
	c.Inputs[urls].add(c.of(float64(s.URLs)))
	c.Seconds.add(c.of(s.Seconds))
}

// machine returns the input for a machine, without the number of URLs.
func (c *scaling) machine(m Machine) (x [inputs]float64) {
	for i, f := range m.facts() {
		switch {
		case f > 0:
			x[i] = c.input(i, f)
		case c.Inputs[i].width() > 0:
			x[i] = 0.5
		}
	}
	return x
}

func (c *scaling) urls(n float64) float64 { return c.input(urls, n) }

func (c *scaling) example(s Sample) example {
	e := example{x: c.machine(s.Machine), y: (c.of(s.Seconds) - c.Seconds.Min) / c.seconds()}
	e.x[urls] = c.urls(float64(s.URLs))
	return e
}

// seconds returns the growth of the seconds, or of their logarithm, per unit of the network's output.
func (c *scaling) seconds() float64 { return max(c.Seconds.Max-c.Seconds.Min, 0.5) }

// leastSeconds is the shortest time that the paper's network predicts; its output can be negative.
const leastSeconds = 0.1

// unscale converts an output to seconds.
func (c *scaling) unscale(output float64) float64 {
	if v := c.Seconds.Min + output*c.seconds(); !c.linear {
		return math.Exp(v)
	} else if v == v {
		return max(v, leastSeconds)
	}
	return math.Inf(1) // the training has diverged
}
