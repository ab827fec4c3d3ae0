package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"kumo/internal/view/chart"
)

func days(n int) (all []time.Time) {
	for i := range n {
		all = append(all, time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC))
	}
	return all
}

func TestAChartIsWellFormedAndNamesItsLines(t *testing.T) {
	for _, n := range []int{0, 1, 2, 259} {
		c := chart.Chart{Title: "a < b & c", Days: days(n)}
		p := chart.Panel{Title: "pages", Unit: func(v float64) string { return fmt.Sprint(v) }}
		for i := range 27 {
			l := chart.Line{Name: fmt.Sprintf("line<%d>", i), Values: make([]float64, n)}
			for day := range n {
				l.Values[day] = float64(i * day)
			}
			if n > 1 {
				l.Values[0] = math.NaN()
			}
			p.Lines = append(p.Lines, l)
		}
		c.Panels = []chart.Panel{p, {Title: "none", Unit: p.Unit}}
		var b strings.Builder
		if err := c.SVG(&b); err != nil {
			t.Fatal(err)
		}
		names, d := map[string]bool{}, xml.NewDecoder(strings.NewReader(b.String()))
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%d days: %v", n, err)
			}
			if text, ok := token.(xml.CharData); ok {
				names[string(text)] = true
			}
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "%!") ||
			strings.Contains(b.String(), "Inf") ||
			!names["a < b & c"] || n > 0 && !names["line<26>"] || n > 0 && !names["2026-01-01"] {
			t.Errorf("%d days: %.2000s", n, b.String())
		}
	}
}

func TestTheHighestPointIsInThePanel(t *testing.T) {
	c := chart.Chart{Days: days(2), Panels: []chart.Panel{{Unit: func(float64) string { return "" },
		Lines: []chart.Line{{Name: "l", Values: []float64{0, 123456}}}}}}
	var b strings.Builder
	if err := c.SVG(&b); err != nil {
		t.Fatal(err)
	}
	_, points, _ := strings.Cut(b.String(), `points="`)
	var x0, y0, x1, y1 float64
	if _, err := fmt.Sscanf(points, "%f,%f %f,%f", &x0, &y0, &x1, &y1); err != nil {
		t.Fatal(err)
	}
	if x0 >= x1 || y0 != 280 || y1 < 34 || y1 > 90 {
		t.Errorf("from %v,%v to %v,%v", x0, y0, x1, y1)
	}
}
