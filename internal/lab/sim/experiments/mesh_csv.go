package experiments

// Tables are what the experiments came to, with all digits.
func (m *Mesh) Tables(r *MeshResult) []Table {
	return []Table{m.scalingTable(r), m.loadTable(r), m.runTable(r), m.trafficTable(r)}
}

func (m *Mesh) scalingTable(r *MeshResult) Table {
	t := newTable("scaling", "sample", "minute", "nodes", "urls")
	sample := 0
	for _, s := range m.Steps(r) {
		for _, urls := range s.Samples {
			sample++
			t.add(sample, m.minutes(sample), s.Nodes, urls)
		}
	}
	return t
}

// minutes is when a sample ends, counted from 1.
func (m *Mesh) minutes(sample int) float64 { return float64(sample) * m.Sample.Minutes() }

// runTable is a table whose lines begin with what a run is told from others by.
func runTable(name string, columns ...string) Table {
	return newTable(name, append([]string{"rule", "t_seconds", "urls_per_host", "areas"}, columns...)...)
}

// Areas are in words by what a run's load ratio is taken.
func (s *MeshSetting) Areas() string {
	switch {
	case s.OwnAreas:
		return "own"
	case s.Rule == NoRule:
		return "same"
	}
	return "table"
}

func (s *MeshSetting) add(t *Table, cells ...any) {
	t.add(append([]any{s.Rule, s.T.Seconds(), s.HostURLs, s.Areas()}, cells...)...)
}

func (m *Mesh) loadTable(r *MeshResult) Table {
	t := runTable("load", "sample", "minute", "node", "waiting", "ratio", "level", "area", "fetched")
	for i := range r.Balance {
		run := &r.Balance[i]
		for sample, nodes := range run.Nodes {
			for node, n := range nodes {
				run.add(&t, sample+1, m.minutes(sample+1), node+1, n.Waiting, m.Ratio(run, sample, node), n.Level, n.Area,
					n.Fetched)
			}
		}
	}
	return t
}

func (m *Mesh) runTable(r *MeshResult) Table {
	t := runTable("runs", "fetched", "rise", "rise_of_last_third", "waiting", "waiting_at_heavy", "highest_level_of_light",
		"hosts_given")
	for i := range r.Balance {
		s := m.Summary(r, i)
		r.Balance[i].add(&t, s.Fetched, s.Rise, s.LastRise, s.Waiting, s.Heavy, s.MostOfLight, s.Given)
	}
	return t
}

// A MeshSummary is a run in a line.
type MeshSummary struct {
	Fetched        int     // URLs
	Rise, LastRise float64 // more than without balancing: in all, and in the last third of the time
	Waiting, Heavy int     // URLs at the end: in all, and at nodes to which more come than they can fetch
	MostOfLight    int
	Given          int // hosts that went to nodes that had less to do
}

// Summary sums up one of Balance.
func (m *Mesh) Summary(r *MeshResult, i int) (s MeshSummary) {
	run, none := &r.Balance[i], &r.Balance[NoRule]
	n := len(run.Nodes)
	s.Fetched, s.MostOfLight, s.Given = m.Fetched(run, n), m.MostOfLight(run), run.Figures[n-1].Given
	s.Rise, s.LastRise = m.Rise(run, none, 0, n), m.Rise(run, none, n-n/3, n)
	s.Waiting, s.Heavy = m.Waiting(run)
	return s
}

func (m *Mesh) trafficTable(r *MeshResult) Table {
	t := runTable("traffic", "kind", "messages_per_node_second", "bytes_per_node_second", "messages_per_page",
		"bytes_per_page")
	for i := range r.Balance {
		for _, f := range m.Traffic(&r.Balance[i]) {
			r.Balance[i].add(&t, f.Kind, f.Messages, f.Bytes, f.PageMessages, f.PageBytes)
		}
	}
	return t
}
