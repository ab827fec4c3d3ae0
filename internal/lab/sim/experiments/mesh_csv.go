package experiments

import (
	"encoding/csv"
	"io"
	"strconv"
)

// A Table is a file of lines.
type Table struct {
	Name  string
	Lines [][]string // the first are the names of columns
}

// Write writes the table as CSV.
func (t *Table) Write(w io.Writer) error { return csv.NewWriter(w).WriteAll(t.Lines) }

// Tables are what the experiments came to, with all digits.
func (m *Mesh) Tables(r *MeshResult) []Table {
	return []Table{m.scalingTable(r), m.loadTable(r), m.runTable(r), m.trafficTable(r)}
}

func (m *Mesh) scalingTable(r *MeshResult) Table {
	t := Table{"scaling", [][]string{{"sample", "minute", "nodes", "urls"}}}
	sample := 0
	for _, s := range m.Steps(r) {
		for _, urls := range s.Samples {
			sample++
			t.Lines = append(t.Lines, []string{strconv.Itoa(sample), number(m.minutes(sample)), strconv.Itoa(s.Nodes),
				number(urls)})
		}
	}
	return t
}

// minutes is when a sample ends, counted from 1.
func (m *Mesh) minutes(sample int) float64 { return float64(sample) * m.Sample.Minutes() }

// runColumns are what a run is told from others by.
var runColumns = []string{"rule", "t_seconds", "urls_per_host", "areas"}

func (s *MeshSetting) columns() []string {
	areas := "table"
	if s.OwnAreas {
		areas = "own"
	} else if s.Rule == NoRule {
		areas = "same"
	}
	return []string{s.Rule.String(), number(s.T.Seconds()), strconv.Itoa(s.HostURLs), areas}
}

func (m *Mesh) loadTable(r *MeshResult) Table {
	t := Table{"load", [][]string{append(append([]string{}, runColumns...), "sample", "minute", "node", "waiting", "ratio",
		"level", "area", "fetched")}}
	for i := range r.Balance {
		run := &r.Balance[i]
		for sample, nodes := range run.Nodes {
			for node, n := range nodes {
				t.Lines = append(t.Lines, append(run.columns(), strconv.Itoa(sample+1), number(m.minutes(sample+1)),
					strconv.Itoa(node+1), strconv.Itoa(n.Waiting), number(m.Ratio(run, sample, node)), strconv.Itoa(n.Level),
					strconv.Itoa(n.Area), strconv.Itoa(n.Fetched)))
			}
		}
	}
	return t
}

func (m *Mesh) runTable(r *MeshResult) Table {
	t := Table{"runs", [][]string{append(append([]string{}, runColumns...), "fetched", "rise",
		"rise_of_last_third", "waiting", "waiting_at_heavy", "highest_level_of_light", "hosts_given")}}
	for i := range r.Balance {
		run, s := &r.Balance[i], m.Summary(r, i)
		t.Lines = append(t.Lines, append(run.columns(), strconv.Itoa(s.Fetched), number(s.Rise), number(s.LastRise),
			strconv.Itoa(s.Waiting), strconv.Itoa(s.Heavy), strconv.Itoa(s.MostOfLight), strconv.Itoa(s.Given)))
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
	t := Table{"traffic", [][]string{append(append([]string{}, runColumns...), "kind", "messages_per_node_second",
		"bytes_per_node_second", "messages_per_page", "bytes_per_page")}}
	for i := range r.Balance {
		for _, f := range m.Traffic(&r.Balance[i]) {
			t.Lines = append(t.Lines, append(r.Balance[i].columns(), f.Kind, number(f.Messages), number(f.Bytes),
				number(f.PageMessages), number(f.PageBytes)))
		}
	}
	return t
}
