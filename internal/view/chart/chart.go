// Package chart draws time series over days, and curves over numbers, as SVG for any browser. It draws only lines.
package chart

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// A Chart has panels below each other. They share their days, and the colors of their lines.
type Chart struct {
	Title  string
	Days   []time.Time // sorted
	Panels []Panel
}

// A Panel contains lines with the same unit.
type Panel struct {
	Title string
	Unit  func(float64) string // formats a value for the axis
	Lines []Line               // one value per day
}

// A Line is a named series. NaN marks a day without a value.
type Line struct {
	Name   string
	Values []float64
}

// Sizes in pixels.
const (
	width, panel        = 960, 320
	left, right         = 90, 190
	top, bottom, header = 34, 40, 34
	ticks               = 5  // approximate number on the value axis
	nameGap             = 13 // minimum distance between the names of two lines
)

// SVG writes the chart as SVG.
func (c *Chart) SVG(w io.Writer) error {
	return svg(w, c.Title, len(c.Panels), func(b *strings.Builder, i int) { c.panel(b, &c.Panels[i]) })
}

// svg writes an SVG of panels; draw is called for each.
func svg(w io.Writer, title string, panels int, draw func(b *strings.Builder, i int)) error {
	b := &strings.Builder{}
	height := header + panels*panel
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(b, left, 22, "start", `font-size="15"`, title)
	for i := range panels {
		fmt.Fprintf(b, `<g transform="translate(0,%d)">`+"\n", header+i*panel)
		draw(b, i)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// level draws a horizontal line across a panel, with its value on the left.
func level(b *strings.Builder, y float64, value string) {
	fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#ddd"/>`+"\n", left, width-right, y)
	text(b, left-8, y+4, "end", "", value)
}

// mark draws a tick on the axis below a panel, with its value.
func mark(b *strings.Builder, x float64, value string) {
	fmt.Fprintf(b, `<line x1="%.1f" x2="%.1[1]f" y1="%d" y2="%d" stroke="#888"/>`+"\n", x, panel-bottom, panel-bottom+4)
	text(b, x, panel-bottom+18, "middle", "", value)
}

func (c *Chart) panel(b *strings.Builder, p *Panel) {
	most := 0.0
	for i := range p.Lines {
		for _, v := range p.Lines[i].Values {
			if !math.IsNaN(v) {
				most = max(most, v)
			}
		}
	}
	step := niceStep(most / ticks)
	most = max(math.Ceil(most/step)*step, step)
	y := func(v float64) float64 { return panel - bottom - v/most*(panel-top-bottom) }
	text(b, left, top-12, "start", `font-weight="bold"`, p.Title)
	for v := 0.0; v <= most+step/2; v += step {
		level(b, y(v), p.Unit(v))
	}
	c.dates(b)
	for i := range p.Lines {
		c.line(b, &p.Lines[i], colour(i, len(p.Lines)), y)
	}
	c.names(b, p, y)
}

// x returns the position of a day.
func (c *Chart) x(i int) float64 {
	first, last := c.Days[0], c.Days[len(c.Days)-1]
	if all := last.Sub(first); all > 0 {
		return left + float64(c.Days[i].Sub(first))/float64(all)*(width-left-right)
	}
	return left + (width-left-right)/2
}

// dates writes some of the days below the panel, including the first and the last.
func (c *Chart) dates(b *strings.Builder) {
	const room = 80 // pixels per date
	last := math.Inf(-1)
	for i := range c.Days {
		x, end := c.x(i), c.x(len(c.Days)-1)
		if i < len(c.Days)-1 && (x-last < room || end-x < room) {
			continue
		}
		last = x
		mark(b, x, c.Days[i].Format(time.DateOnly))
	}
}

func (c *Chart) line(b *strings.Builder, l *Line, colour string, y func(float64) float64) {
	var points []string
	for i, v := range l.Values {
		if !math.IsNaN(v) {
			points = append(points, fmt.Sprintf("%.1f,%.1f", c.x(i), y(v)))
		}
	}
	stroke(b, colour, points)
}

// stroke draws a line through points in SVG syntax; a single point becomes a dot.
func stroke(b *strings.Builder, colour string, points []string) {
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="%s"/>`+"\n", colour,
		strings.Join(points, " "))
	if len(points) == 1 {
		x, y, _ := strings.Cut(points[0], ",")
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="2.5" fill="%s"/>`+"\n", x, y, colour)
	}
}

// names writes the names of lines at their ends.
func (c *Chart) names(b *strings.Builder, p *Panel, y func(float64) float64) {
	var all []end
	for i := range p.Lines {
		for _, v := range slices.Backward(p.Lines[i].Values) {
			if !math.IsNaN(v) {
				all = append(all, end{p.Lines[i].Name, colour(i, len(p.Lines)), y(v)})
				break
			}
		}
	}
	nameEnds(b, all)
}

// An end is the end point of a line.
type end struct {
	name   string
	colour string
	at     float64
}

// nameEnds writes the names of lines at their ends, from top to bottom, moved apart so that they do not overlap.
func nameEnds(b *strings.Builder, all []end) {
	slices.SortStableFunc(all, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	gap := min(nameGap, float64(panel-top)/float64(max(len(all), 1)))
	for i := range all { // downwards, then up from the bottom
		if i > 0 {
			all[i].at = max(all[i].at, all[i-1].at+gap)
		}
	}
	floor := float64(panel - bottom)
	for i := range slices.Backward(all) {
		all[i].at = min(all[i].at, floor)
		floor = all[i].at - gap
	}
	for _, l := range all {
		text(b, width-right+8, l.at+4, "start", fmt.Sprintf(`fill="%s"`, l.colour), l.name)
	}
}

// colour returns the color of a line: distinct from the others, dark enough on white.
func colour(i, of int) string {
	return fmt.Sprintf("hsl(%d,70%%,%d%%)", i*360/max(of, 1), 34+i%2*10)
}

// niceStep returns the smallest of 1, 2, 5, 10, 20, … that is at least a number.
func niceStep(least float64) float64 {
	if least <= 1 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= least {
			return f * power
		}
	}
	return 10 * power
}

func text(b *strings.Builder, x, y float64, anchor, more, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" %s>`, x, y, anchor, more)
	_ = xml.EscapeText(b, []byte(s)) // a Builder never fails
	b.WriteString("</text>\n")
}
