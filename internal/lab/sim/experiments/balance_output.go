package experiments

import "strings"

// Tables returns the results with all digits.
func (b *Balance) Tables(r *BalanceResult) []Table {
	factors := newTable("factors", "program", "factor", "unit", "value", "seconds", "deviation", "predicted_seconds",
		"network", "processor", "disk", "places")
	for i := range r.Factors {
		f := &r.Factors[i]
		mean, deviation := f.Mean()
		factors.add(f.Program, b.Factors[f.Factor].Name, b.Factors[f.Factor].Unit, f.Value, mean, deviation, f.Predicted,
			f.Piece.Network, f.Piece.Processor, f.Piece.Disk, f.Places)
	}
	splits := newTable("splits", "program", "split", "node", "urls", "predicted_seconds", "seconds",
		"run_predicted_seconds", "run_seconds", "tail", "ratio")
	for i := range r.Splits {
		s := &r.Splits[i]
		for node, n := range s.Counts {
			splits.add(s.Program, s.Way, node+1, n, s.Predicted[node], s.Mean(node), s.PredictedRun, s.Run, s.Tail, s.Ratio)
		}
	}
	swarm := newTable("swarm", "nodes", "clusters", "split", "mean_ratio", "worst_ratio", "evaluations_per_node",
		"microseconds")
	for _, s := range r.Swarm {
		swarm.add(s.Nodes, s.Clusters, s.Way, s.Mean, s.Worst, s.Evaluations, float64(s.Cost.Nanoseconds())/1000)
	}
	variance := newTable("variance", "split", "n", "n", "80n", "deviation_seconds", "run_seconds")
	for _, v := range r.Variance {
		variance.add(v.Way, v.Counts[0], v.Counts[1], v.Counts[2], v.Deviation, v.Seconds)
	}
	curve := newTable("curve", "program", "split", "samples", "basis", "error_held_back", "error", "run_seconds",
		"by_shortest", "worst_by_shortest")
	for _, c := range r.Curve {
		curve.add(c.Program, c.Way, c.Samples, c.Basis, c.HeldBack, c.Error, c.Run, c.Longer, c.Worst)
	}
	runs := newTable("runs", "program", "run", "samples", "basis", "error", "run_seconds", "by_shortest")
	for _, w := range r.Whole {
		runs.add(w.Program, w.Number, w.Samples, w.Basis, w.Error, w.Run, w.Longer)
	}
	crawls := newTable("crawls", "strategy", "slows", "node", "pages", "busy", "ended_seconds", "run_seconds",
		"shortest_seconds", "tail", "ratio", "moved_hosts", "strategy_messages_per_page", "link_messages_per_page",
		"messages_per_page", "log_entries")
	for i := range r.Crawls {
		c := &r.Crawls[i]
		strategies, links, all := c.PageMessages()
		for node, n := range c.Nodes {
			crawls.add(c.Strategy, c.Slows, node+1, n.Pages, n.Busy, n.Ended.Seconds(), c.Time.Seconds(), c.Shortest.Seconds(),
				c.Tail, c.Ratio, c.Moved, strategies, links, all, c.Appended)
		}
	}
	return []Table{factors, splits, swarm, variance, curve, runs, crawls}
}

// Pictures returns the paper's figures 2 to 8, and the value of samples.
func (b *Balance) Pictures(r *BalanceResult) []NamedPicture {
	return []NamedPicture{b.factorPicture(r), b.splitPicture(r), swarmPicture(r), curvePicture(r)}
}

func (b *Balance) factorPicture(r *BalanceResult) NamedPicture {
	pic := NamedPicture{"factors", "Time of a piece, in seconds, by the machine's figures", Picture{Columns: 1}}
	for i := range b.Factors {
		f := &b.Factors[i]
		panel := Panel{Title: f.Name, X: strings.TrimSpace(f.Name + " " + f.Unit)}
		for k := range r.Factors {
			if row := &r.Factors[k]; row.Factor == i {
				mean, _ := row.Mean()
				panel.Curves.add(row.Program, row.Value, mean)
				panel.Curves.add(row.Program+", predicted", row.Value, row.Predicted)
			}
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

func (b *Balance) splitPicture(r *BalanceResult) NamedPicture {
	pic := NamedPicture{"splits", "Time of each node, in seconds, by the split of 500 URLs", Picture{Columns: 1}}
	for _, p := range b.Programs {
		panel := Panel{Title: "program " + p.Name, X: "node"}
		for i := range r.Splits {
			s := &r.Splits[i]
			for node := range s.Counts {
				if s.Program == p.Name {
					panel.Curves.add(s.Way, float64(node+1), s.Mean(node))
				}
			}
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

func swarmPicture(r *BalanceResult) NamedPicture {
	panel := Panel{Title: "run time relative to the shortest, mean", X: "nodes", LogX: true, LogY: true}
	for _, s := range r.Swarm {
		panel.Curves.add(s.Way, float64(s.Nodes), s.Mean)
	}
	return NamedPicture{"swarm", "Splits of random clusters, 100 URLs a node", Picture{Columns: 1, Panels: []Panel{panel}}}
}

func curvePicture(r *BalanceResult) NamedPicture {
	off := Panel{Title: "error of predictions (0.1 is about 10 %)", X: "samples"}
	long := Panel{Title: "run time relative to the shortest", X: "samples"}
	cold := Panel{Title: "run time relative to the shortest, from a cold start", X: "runs"}
	for _, c := range r.Curve {
		x := float64(c.Samples)
		name := c.Program + ", " + c.Way
		off.Curves.add(name, x, c.Error)
		off.Curves.add(name+", held back", x, c.HeldBack)
		long.Curves.add(name, x, c.Longer)
	}
	for _, c := range r.Whole {
		cold.Curves.add(c.Program, float64(c.Number), c.Longer)
	}
	return NamedPicture{"curve", "The value of samples: five nodes, 500 URLs",
		Picture{Columns: 1, Panels: []Panel{off, long, cold}}}
}
