package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// median returns the median; NaN if there are no values.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	switch {
	case n == 0:
		return math.NaN()
	case n%2 == 0:
		return (sorted[n/2-1] + sorted[n/2]) / 2
	}
	return sorted[n/2]
}

// each returns a figure of each run.
func each(runs []result, figure func(result) float64) []float64 {
	values := make([]float64, len(runs))
	for i, r := range runs {
		values[i] = figure(r)
	}
	return values
}

// ratios divides the figures of pairs of runs.
func ratios(a, b []result, figure func(result) float64) []float64 {
	values := make([]float64, min(len(a), len(b)))
	for i := range values {
		values[i] = figure(a[i]) / figure(b[i])
	}
	return values
}

// spread formats the median, with minimum and maximum if they differ from it as printed.
func spread(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	middle, least, most := number(median(values)), number(slices.Min(values)), number(slices.Max(values))
	if least == most {
		return middle
	}
	return fmt.Sprintf("%s (%s-%s)", middle, least, most)
}

// number formats a number with three significant digits.
func number(x float64) string {
	digits := 2 - int(math.Floor(math.Log10(max(math.Abs(x), 0.01))))
	return fmt.Sprintf("%.*f", max(0, digits), x)
}

// A table has rows of cells, and is printed with aligned columns.
type table struct{ rows [][]string }

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t.rows {
		fmt.Fprintln(tab, strings.Join(row, "\t"))
	}
	tab.Flush()
}

func mega(bytes int64) float64 { return float64(bytes) / 1e6 }

func cpuSeconds(r result) float64  { return r.cpu.Seconds() }
func wallSeconds(r result) float64 { return r.wall.Seconds() }
func peakMB(r result) float64      { return mega(r.rss) }

// serverShare returns the server's CPU time per second of the crawler's.
func serverShare(r result) float64 { return r.server.Seconds() / cmp.Or(r.cpu.Seconds(), math.NaN()) }
