package chart_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"kumo/internal/view/chart"
)

func svgOf(t *testing.T, p *chart.Plot) string {
	t.Helper()
	var b strings.Builder
	if err := p.SVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"NaN", "Inf", "%!"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("%s in %s", bad, b.String())
		}
	}
	return b.String()
}

// pointsOf returns the points of the first curve.
func pointsOf(t *testing.T, svg string) (xs, ys []float64) {
	t.Helper()
	_, rest, _ := strings.Cut(svg, `points="`)
	all, _, _ := strings.Cut(rest, `"`)
	for p := range strings.FieldsSeq(all) {
		var x, y float64
		if _, err := fmt.Sscanf(p, "%f,%f", &x, &y); err != nil {
			t.Fatal(err)
		}
		xs, ys = append(xs, x), append(ys, y)
	}
	return xs, ys
}

// TestAPlotShowsItsPoints checks that equal steps have equal distances, or equal factors on a logarithmic axis, and
// that points without a value on it are omitted.
func TestAPlotShowsItsPoints(t *testing.T) {
	for _, c := range []struct {
		log  bool
		x, y []float64
		want int
	}{
		{false, []float64{0, 2, 4}, []float64{-1, 0.5, 2}, 3},
		{true, []float64{1, 10, 100}, []float64{0.01, 1, 100}, 3},
		{true, []float64{0, 10, 100}, []float64{1, 1, math.NaN()}, 1},
		{false, []float64{7}, []float64{math.Inf(1)}, 0},
		{true, []float64{5}, []float64{1}, 1},
		{false, nil, nil, 0},
	} {
		axes := chart.Axes{Title: "a & b", X: "nodes", LogX: c.log, LogY: c.log, Curves: []chart.Curve{{"c", c.x, c.y}}}
		xs, ys := pointsOf(t, svgOf(t, &chart.Plot{Title: "<t>", Panels: []chart.Axes{axes, {}}}))
		if len(xs) != c.want {
			t.Errorf("%+v: %d points", c, len(xs))
			continue
		}
		for i := range xs {
			if xs[i] < 0 || xs[i] > 960 || ys[i] < 0 || ys[i] > 320 {
				t.Errorf("%+v: a point at %v, %v", c, xs[i], ys[i])
			}
		}
		if len(xs) == 3 && (math.Abs(xs[1]-xs[0]-(xs[2]-xs[1])) > 0.2 || math.Abs(ys[1]-ys[0]-(ys[2]-ys[1])) > 0.2 ||
			xs[1] <= xs[0] || ys[1] >= ys[0]) {
			t.Errorf("%+v: points at %v, %v", c, xs, ys)
		}
	}
}
