package experiments

// FigureTable is one experiment's points of a mode and loading: mean and standard deviation of the paper's measures in
// the paper's units, then means of what explains them.
func FigureTable(points []Point) Table {
	t := newTable(FigureName(points[0].Setting), "place", "nodes", "timeout_T", "runs")
	for _, m := range Measures {
		t.Lines[0] = append(t.Lines[0], m.Name, m.Name+"_deviation")
	}
	for _, e := range explaining {
		t.Lines[0] = append(t.Lines[0], e.name)
	}
	for i := range points {
		p := &points[i]
		line := []any{p.Place, p.Nodes, p.Timeout, len(p.Runs)}
		for _, m := range Measures {
			mean, deviation := p.Mean(m)
			line = append(line, mean, deviation)
		}
		for _, e := range explaining {
			mean, _ := meanAndDeviation(p.Each(e.of))
			line = append(line, mean)
		}
		t.add(line...)
	}
	return t
}

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
