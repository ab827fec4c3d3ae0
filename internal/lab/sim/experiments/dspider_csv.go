package experiments

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes one experiment's points of a mode and loading as a table: mean and standard deviation of the paper's
// measures in the paper's units, then means of what explains them.
func WriteCSV(w io.Writer, points []Point) error {
	head := []string{"place", "nodes", "timeout_T", "runs"}
	for _, m := range Measures {
		head = append(head, m.Name, m.Name+"_deviation")
	}
	for _, e := range explaining {
		head = append(head, e.name)
	}
	lines := [][]string{head}
	for i := range points {
		p := &points[i]
		line := []string{p.Place.String(), strconv.Itoa(p.Nodes), number(p.Timeout), strconv.Itoa(len(p.Runs))}
		for _, m := range Measures {
			mean, deviation := p.Mean(m)
			line = append(line, number(mean), number(deviation))
		}
		for _, e := range explaining {
			mean, _ := meanAndDeviation(p.Each(e.of))
			line = append(line, number(mean))
		}
		lines = append(lines, line)
	}
	return csv.NewWriter(w).WriteAll(lines)
}

// number has as many digits as mean something.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }

var explaining = []struct {
	name string
	of   func(*Figures) float64
}{
	{"time_T", func(f *Figures) float64 { return f.Time }},
	{"downloads", func(f *Figures) float64 { return float64(f.Downloads) }},
	{"distinct", func(f *Figures) float64 { return float64(f.Distinct) }},
	{"host_requests", func(f *Figures) float64 { return float64(f.HostRequests) }},
	{"links_sent", func(f *Figures) float64 { return float64(f.Links) }},
	{"probes", func(f *Figures) float64 { return float64(f.Probes) }},
	{"files_missed", func(f *Figures) float64 { return f.Missed }},
	{"hosts_out_of_reach", func(f *Figures) float64 { return f.Unnear }},
	{"hosts_not_found", func(f *Figures) float64 { return f.Unfound }},
	{"connect_T", func(f *Figures) float64 { return f.Delay }},
	{"connecting", func(f *Figures) float64 { return f.Connect }},
	{"transferring", func(f *Figures) float64 { return f.Transfer }},
	{"timeouts", func(f *Figures) float64 { return f.TimedOut }},
	{"without_work", func(f *Figures) float64 { return f.Idle }},
	{"bandwidth_used", func(f *Figures) float64 { return f.LinkUse }},
}
