package ui

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"kumo/internal/base/stats"
	"kumo/internal/state/forecast"
)

// A chart is a curve on a page, drawn without scripts in a box of [chartWidth] by [chartHeight].
type chart struct {
	Name, Says string
	Line, Area string // SVG paths
	Most, Last string
	From, To   string
	Class      string
}

const (
	chartWidth  = 400
	chartHeight = 80
	chartSteps  = 160 // maximum number of points of a curve
)

// charts returns the charts of a crawl.
func (c *crawl) charts(r *http.Request) ([]chart, error) {
	x, err := c.curves(r)
	if err != nil {
		return nil, err
	}
	points := x.Hour
	if r.FormValue("span") == "all" || len(points) == 0 {
		points = x.All
	}
	if len(points) < 2 {
		return nil, nil
	}
	perSecond := func(get func(*stats.Point) int64) func(a, b *stats.Point) float64 {
		return func(a, b *stats.Point) float64 {
			return float64(get(b)-get(a)) / max(b.Time.Sub(a.Time).Seconds(), 0.001)
		}
	}
	all := []chart{draw("Pages per second", "good", points, perSecond(func(p *stats.Point) int64 { return p.Pages }),
		rate)}
	if len(x.Hour) == 0 { // the crawl's files contain nothing else
		all[0].Name = "Visits per second"
		return all, nil
	}
	return append(all,
		draw("Received per second", "", points, perSecond(func(p *stats.Point) int64 { return p.Bytes }),
			func(v float64) string { return stats.Bytes(int64(v)) + "/s" }),
		draw("URLs waiting", "", points, func(_, b *stats.Point) float64 { return float64(b.Waiting) },
			func(v float64) string { return forecast.Grouped(int64(v)) }),
		draw("Errors per second", "bad", points, perSecond(func(p *stats.Point) int64 { return p.Failed }), rate)), nil
}

// draw draws a value that is computed from each point and one at least a second before it, as rates over shorter times
// are meaningless.
func draw(name, class string, points []stats.Point, value func(a, b *stats.Point) float64,
	say func(float64) string) chart {
	first := points[0].Time
	span := max(points[len(points)-1].Time.Sub(first), time.Second)
	var dots []dot
	step, a, last := max(span/chartSteps, time.Second), &points[0], &points[len(points)-1]
	for i := range points[1:] {
		b := &points[i+1]
		if b != last && (b.Time.Sub(a.Time) < step || last.Time.Sub(b.Time) < step) {
			continue
		}
		dots = append(dots, dot{float64(b.Time.Sub(first)) / float64(span) * chartWidth, max(value(a, b), 0)})
		a = b
	}
	return join(name, class, first, span, dots, say)
}

// drawPoints draws a value of each point.
func drawPoints(name, class string, points []stats.Point, value func(*stats.Point) float64,
	say func(float64) string) chart {
	first := points[0].Time
	span := max(points[len(points)-1].Time.Sub(first), time.Second)
	dots := make([]dot, len(points))
	for i := range points {
		dots[i] = dot{float64(points[i].Time.Sub(first)) / float64(span) * chartWidth, value(&points[i])}
	}
	return join(name, class, first, span, dots, say)
}

// A dot is a point of a chart; y is the value.
type dot struct{ x, y float64 }

// join draws a line through dots.
func join(name, class string, first time.Time, span time.Duration, dots []dot, say func(float64) string) chart {
	most, now := 0.0, 0.0
	for _, d := range dots {
		now = d.y
		most = max(most, now)
	}
	var line strings.Builder
	for i, d := range dots {
		y := float64(chartHeight - 1)
		if most > 0 {
			y -= d.y / most * (chartHeight - 3)
		}
		if i == 0 {
			fmt.Fprintf(&line, "M0 %.1f", y)
		}
		fmt.Fprintf(&line, "L%.1f %.1f", d.x, y)
	}
	c := chart{Name: name, Class: class, Line: line.String(), Most: say(most), Last: say(now)}
	c.Area = c.Line + fmt.Sprintf("L%d %dL0 %[2]dZ", chartWidth, chartHeight)
	layout := "15:04"
	if span > 20*time.Hour {
		layout = "2 Jan 15:04"
	}
	c.From, c.To = first.UTC().Format(layout), first.Add(span).UTC().Format(layout)
	c.Says = fmt.Sprintf("%s from %s to %s UTC: at most %s, finally %s", name, c.From, c.To, c.Most, c.Last)
	return c
}
