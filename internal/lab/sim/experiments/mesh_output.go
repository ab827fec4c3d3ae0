package experiments

import (
	"fmt"
	"slices"
)

// Tables returns the results with all digits.
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

// minutes returns when a sample ends. Samples count from 1.
func (m *Mesh) minutes(sample int) float64 { return float64(sample) * m.Sample.Minutes() }

// runTable returns a table whose first columns identify a run.
func runTable(name string, columns ...string) Table {
	return newTable(name, append([]string{"rule", "t_seconds", "urls_per_host", "areas"}, columns...)...)
}

// Areas names the areas that a run's load ratio refers to.
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
		r.Balance[i].add(&t, s.Fetched, s.Rise, s.LastRise, s.Waiting, s.Heavy, s.MaxLightLevel, s.Given)
	}
	return t
}

// A MeshSummary is a one-line summary of a run.
type MeshSummary struct {
	Fetched        int     // URLs
	Rise, LastRise float64 // increase over no balancing: in total, and in the last third of the time
	Waiting, Heavy int     // URLs pending at the end: in total, and at heavy nodes
	MaxLightLevel  int
	Given          int // hosts moved to nodes with less load
}

// Summary returns the summary of Balance[i].
func (m *Mesh) Summary(r *MeshResult, i int) (s MeshSummary) {
	run, none := &r.Balance[i], &r.Balance[NoRule]
	n := len(run.Nodes)
	s.Fetched, s.MaxLightLevel, s.Given = m.Fetched(run, n), m.MaxLightLevel(run), run.Figures[n-1].MovedHosts
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

// Pictures returns the paper's figures 4 to 8, and the dependence on T.
func (m *Mesh) Pictures(r *MeshResult) []NamedPicture {
	return []NamedPicture{m.scalingPicture(r), m.loadPicture(r), m.outputPicture(r), m.intervalPicture(r),
		m.trafficPicture(r)}
}

func (m *Mesh) scalingPicture(r *MeshResult) NamedPicture {
	speed := Panel{Title: fmt.Sprintf("URLs fetched in %v", m.Sample), X: "minutes"}
	mean := Panel{Title: "mean by number of nodes", X: "nodes"}
	sample := 0
	for _, s := range m.Steps(r) {
		for _, n := range s.Samples {
			sample++
			speed.Curves.add("all nodes", m.minutes(sample), n)
		}
		nodes := float64(s.Nodes)
		mean.Curves.add("mean", nodes, s.Mean())
		mean.Curves.add("all they can fetch", nodes, nodes*m.Speed*m.Sample.Seconds())
	}
	return NamedPicture{"scaling", "Speed of nodes that join one after another",
		Picture{Columns: 1, Panels: []Panel{speed, mean}}}
}

// rules returns the runs of the four rules that differ in nothing else.
func (r *MeshResult) rules() []MeshRun { return r.Balance[:ruleCount] }

var rulesInWords = map[Rule]string{NoRule: "no balancing", ByPaper: "the paper's rule",
	ByBlocks: "as many blocks as fit", ByTime: "by time"}

func (m *Mesh) loadPicture(r *MeshResult) NamedPicture {
	pic := NamedPicture{"load", "Load ratio u of eight nodes: pending URLs divided by the size of the work area",
		Picture{Columns: 1}}
	light := Panel{Title: "mean of the light nodes", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		rule := rulesInWords[run.Rule]
		panel := Panel{Title: rule, X: "minutes"}
		for sample := range run.Nodes {
			minutes := m.minutes(sample + 1)
			for node, n := range m.Table {
				name := fmt.Sprintf("node %d, %s", node+1, map[bool]string{true: "heavy", false: "light"}[n.Heavy()])
				panel.Curves.add(name, minutes, m.Ratio(run, sample, node))
			}
			mean, _ := meanAndDeviation(m.ratios(run, sample, lightNode))
			light.Curves.add(rule, minutes, mean)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	pic.Panels = append(pic.Panels, light)
	return pic
}

func (m *Mesh) outputPicture(r *MeshResult) NamedPicture {
	each := Panel{Title: fmt.Sprintf("URLs fetched in %v", m.Sample), X: "minutes"}
	all := Panel{Title: "URLs fetched since the start", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		for sample := range run.Nodes {
			rule, minutes, n := rulesInWords[run.Rule], m.minutes(sample+1), m.Fetched(run, sample+1)
			each.Curves.add(rule, minutes, float64(n-m.Fetched(run, sample)))
			all.Curves.add(rule, minutes, float64(n))
		}
	}
	return NamedPicture{"output", "Output of eight nodes", Picture{Columns: 1, Panels: []Panel{each, all}}}
}

func (m *Mesh) intervalPicture(r *MeshResult) NamedPicture {
	rise := Panel{Title: "output, % more than without balancing", X: "T (s)", LogX: true}
	waiting := Panel{Title: "URLs pending at heavy nodes at the end", X: "T (s)", LogX: true}
	var runs []int
	for i := range r.Balance {
		if b := &r.Balance[i]; b.Rule != NoRule && b.Rule != ByTime && b.HostURLs == 1 && !b.OwnAreas {
			runs = append(runs, i)
		}
	}
	slices.SortStableFunc(runs, func(a, b int) int { return int((r.Balance[a].T - r.Balance[b].T).Seconds()) })
	for _, i := range runs {
		s, rule, t := m.Summary(r, i), rulesInWords[r.Balance[i].Rule], r.Balance[i].T.Seconds()
		rise.Curves.add(rule, t, 100*s.Rise)
		waiting.Curves.add(rule, t, float64(s.Heavy))
	}
	return NamedPicture{"interval", "Influence of T, the interval between load checks",
		Picture{Columns: 1, Panels: []Panel{rise, waiting}}}
}

func (m *Mesh) trafficPicture(r *MeshResult) NamedPicture {
	messages := Panel{Title: "messages a node and second", X: "minutes"}
	bytes := Panel{Title: "bytes a node and second", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		lastMessages, lastBytes, lastTime := 0, 0, 0.0
		for sample := range run.Figures {
			f := &run.Figures[sample]
			n, size := 0, 0
			for k := range f.Messages {
				n, size = n+f.Messages[k], size+f.Bytes[k]
			}
			rule, minutes, seconds := rulesInWords[run.Rule], m.minutes(sample+1), f.NodeTime.Seconds()
			messages.Curves.add(rule, minutes, float64(n-lastMessages)/(seconds-lastTime))
			bytes.Curves.add(rule, minutes, float64(size-lastBytes)/(seconds-lastTime))
			lastMessages, lastBytes, lastTime = n, size, seconds
		}
	}
	return NamedPicture{"traffic", "Traffic between eight nodes", Picture{Columns: 1, Panels: []Panel{messages, bytes}}}
}
