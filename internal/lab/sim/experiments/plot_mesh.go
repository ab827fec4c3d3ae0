package experiments

import (
	"fmt"
	"slices"
)

// Pictures are the paper's figures 4 to 8, and what depends on T.
func (m *Mesh) Pictures(r *MeshResult) []Named {
	return []Named{m.scalingPicture(r), m.loadPicture(r), m.outputPicture(r), m.intervalPicture(r), m.trafficPicture(r)}
}

func (m *Mesh) scalingPicture(r *MeshResult) Named {
	speed, nodes := Curve{Name: "all nodes"}, Curve{Name: "mean"}
	line := Curve{Name: "all they can fetch"}
	for _, s := range m.Steps(r) {
		for _, n := range s.Samples {
			speed.X, speed.Y = append(speed.X, m.minutes(len(speed.X)+1)), append(speed.Y, n)
		}
		nodes.X, nodes.Y = append(nodes.X, float64(s.Nodes)), append(nodes.Y, s.Mean())
		line.X, line.Y = append(line.X, float64(s.Nodes)), append(line.Y, float64(s.Nodes)*m.Speed*m.Sample.Seconds())
	}
	return Named{"scaling", "Speed of nodes that come one after the other", Picture{Columns: 1, Panels: []Panel{
		{Title: fmt.Sprintf("URLs fetched in %v", m.Sample), X: "minutes", Curves: []Curve{speed}},
		{Title: "mean by number of nodes", X: "nodes", Curves: []Curve{nodes, line}}}}}
}

// rules are the runs of the three rules that differ in nothing else.
func (r *MeshResult) rules() []MeshRun { return r.Balance[:ruleless] }

var rulesInWords = map[Rule]string{NoRule: "no balancing", ByPaper: "the paper's rule", ByKumo: "kumo's rule"}

func (m *Mesh) loadPicture(r *MeshResult) Named {
	pic := Named{"load", "Load ratio u of eight nodes: URLs that wait, by the size of the work area", Picture{Columns: 1}}
	for i := range r.rules() {
		run := &r.Balance[i]
		panel := Panel{Title: rulesInWords[run.Rule], X: "minutes"}
		for node, n := range m.Table {
			c := Curve{Name: fmt.Sprintf("node %d, %s", node+1, map[bool]string{true: "heavy", false: "light"}[n.Heavy()])}
			for sample := range run.Nodes {
				c.X, c.Y = append(c.X, m.minutes(sample+1)), append(c.Y, m.Ratio(run, sample, node))
			}
			panel.Curves = append(panel.Curves, c)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	light := Panel{Title: "mean of the light nodes", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		c := Curve{Name: rulesInWords[run.Rule]}
		for sample := range run.Nodes {
			mean, _ := meanAndDeviation(m.ratios(run, sample, lightNode))
			c.X, c.Y = append(c.X, m.minutes(sample+1)), append(c.Y, mean)
		}
		light.Curves = append(light.Curves, c)
	}
	pic.Panels = append(pic.Panels, light)
	return pic
}

func (m *Mesh) outputPicture(r *MeshResult) Named {
	each := Panel{Title: fmt.Sprintf("URLs fetched in %v", m.Sample), X: "minutes"}
	all := Panel{Title: "URLs fetched since the beginning", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		c, sum := Curve{Name: rulesInWords[run.Rule]}, Curve{Name: rulesInWords[run.Rule]}
		for sample := range run.Nodes {
			n := m.Fetched(run, sample+1)
			c.X, c.Y = append(c.X, m.minutes(sample+1)), append(c.Y, float64(n-m.Fetched(run, sample)))
			sum.X, sum.Y = append(sum.X, m.minutes(sample+1)), append(sum.Y, float64(n))
		}
		each.Curves, all.Curves = append(each.Curves, c), append(all.Curves, sum)
	}
	return Named{"output", "Output of eight nodes", Picture{Columns: 1, Panels: []Panel{each, all}}}
}

func (m *Mesh) intervalPicture(r *MeshResult) Named {
	rise := Panel{Title: "output, % more than without balancing", X: "T (s)", LogX: true}
	waiting := Panel{Title: "URLs that wait at heavy nodes at the end", X: "T (s)", LogX: true}
	for rule := ByPaper; rule <= ByKumo; rule++ {
		type point struct{ t, rise, waiting float64 }
		var points []point
		for i := range r.Balance {
			if b := &r.Balance[i]; b.Rule == rule && b.HostURLs == 1 && !b.OwnAreas {
				s := m.Summary(r, i)
				points = append(points, point{b.T.Seconds(), 100 * s.Rise, float64(s.Heavy)})
			}
		}
		slices.SortFunc(points, func(a, b point) int { return int(a.t - b.t) })
		a, b := Curve{Name: rulesInWords[rule]}, Curve{Name: rulesInWords[rule]}
		for _, p := range points {
			a.X, a.Y = append(a.X, p.t), append(a.Y, p.rise)
			b.X, b.Y = append(b.X, p.t), append(b.Y, p.waiting)
		}
		rise.Curves, waiting.Curves = append(rise.Curves, a), append(waiting.Curves, b)
	}
	return Named{"interval", "What depends on T, the time between two looks at the load",
		Picture{Columns: 1, Panels: []Panel{rise, waiting}}}
}

func (m *Mesh) trafficPicture(r *MeshResult) Named {
	messages := Panel{Title: "messages a node and second", X: "minutes"}
	bytes := Panel{Title: "bytes a node and second", X: "minutes"}
	for i := range r.rules() {
		run := &r.Balance[i]
		a, b := Curve{Name: rulesInWords[run.Rule]}, Curve{Name: rulesInWords[run.Rule]}
		lastMessages, lastBytes, lastTime := 0, 0, 0.0
		for sample := range run.Figures {
			f := &run.Figures[sample]
			n, size := 0, 0
			for k := range f.Messages {
				n, size = n+f.Messages[k], size+f.Bytes[k]
			}
			seconds := f.NodeTime.Seconds()
			a.X, a.Y = append(a.X, m.minutes(sample+1)), append(a.Y, float64(n-lastMessages)/(seconds-lastTime))
			b.X, b.Y = append(b.X, m.minutes(sample+1)), append(b.Y, float64(size-lastBytes)/(seconds-lastTime))
			lastMessages, lastBytes, lastTime = n, size, seconds
		}
		messages.Curves, bytes.Curves = append(messages.Curves, a), append(bytes.Curves, b)
	}
	return Named{"traffic", "What eight nodes send each other", Picture{Columns: 1, Panels: []Panel{messages, bytes}}}
}
