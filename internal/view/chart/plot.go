package chart

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Plot has curves over numbers, in panels below each other, each with its own axes.
type Plot struct {
	Title  string
	Panels []Axes
}

// Axes are one panel of a Plot. A logarithmic axis shows values above 0 only.
type Axes struct {
	Title      string
	X          string // label of the horizontal axis
	LogX, LogY bool
	Curves     []Curve
}

// A Curve is a sequence of points that are joined in order. Points with the value NaN are omitted.
type Curve struct {
	Name string
	X, Y []float64
}

// SVG writes the plot as SVG.
func (p *Plot) SVG(w io.Writer) error {
	return svg(w, p.Title, len(p.Panels), func(b *strings.Builder, i int) { p.Panels[i].draw(b) })
}

func (a *Axes) draw(b *strings.Builder) {
	x := scaleOf(a.LogX, a.values(func(c *Curve) []float64 { return c.X }), left, width-right)
	y := scaleOf(a.LogY, a.values(func(c *Curve) []float64 { return c.Y }), panel-bottom, top)
	text(b, left, top-12, "start", `font-weight="bold"`, a.Title)
	text(b, (left+width-right)/2, panel-6, "middle", "", a.X)
	for _, v := range y.marks {
		level(b, y.at(v), shortNumber(v))
	}
	for _, v := range x.marks {
		mark(b, x.at(v), shortNumber(v))
	}
	var ends []end
	for i := range a.Curves {
		c, colour := &a.Curves[i], colour(i, len(a.Curves))
		var points []string
		for k := range c.X {
			if x.shows(c.X[k]) && y.shows(c.Y[k]) {
				points = append(points, fmt.Sprintf("%.1f,%.1f", x.at(c.X[k]), y.at(c.Y[k])))
			}
		}
		stroke(b, colour, points)
		if len(points) > 0 {
			_, at, _ := strings.Cut(points[len(points)-1], ",")
			y, _ := strconv.ParseFloat(at, 64)
			ends = append(ends, end{c.Name, colour, y})
		}
	}
	nameEnds(b, ends)
}

// values returns one coordinate of all points.
func (a *Axes) values(of func(*Curve) []float64) (all []float64) {
	for i := range a.Curves {
		all = append(all, of(&a.Curves[i])...)
	}
	return all
}

// A scale is an axis: its range of values, their positions, and its ticks.
type scale struct {
	log       bool
	low, high float64
	from, to  float64
	marks     []float64
}

// scaleOf returns a scale between two positions that shows all values, and 0 unless it is logarithmic.
func scaleOf(log bool, values []float64, from, to float64) scale {
	s := scale{log: log, from: from, to: to}
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if s.shows(v) {
			low, high = min(low, v), max(high, v)
		}
	}
	if low > high {
		low, high = 1, 1
	}
	if log {
		s.low, s.high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
		if s.high == s.low {
			s.high *= 10
		}
		for v := s.low; v <= s.high*1.001; v *= 10 {
			s.marks = append(s.marks, v)
		}
		return s
	}
	low, high = min(low, 0), max(high, 0)
	step := niceStepOf((high - low) / ticks)
	s.low, s.high = math.Floor(low/step)*step, max(math.Ceil(high/step), math.Floor(low/step)+1)*step
	for i := math.Round(s.low / step); i*step <= s.high+step/2; i++ {
		s.marks = append(s.marks, i*step)
	}
	return s
}

func (s *scale) shows(v float64) bool {
	return !math.IsNaN(v) && !math.IsInf(v, 0) && (v > 0 || !s.log)
}

func (s *scale) at(v float64) float64 {
	part := (v - s.low) / (s.high - s.low)
	if s.log {
		part = math.Log(v/s.low) / math.Log(s.high/s.low)
	}
	return s.from + part*(s.to-s.from)
}

// niceStepOf returns the smallest of 1, 2 and 5, times a power of ten, that is at least a number.
func niceStepOf(least float64) float64 {
	if least <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	return power * niceStep(least/power)
}

// shortNumber formats a number with as few digits as an axis needs.
func shortNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
