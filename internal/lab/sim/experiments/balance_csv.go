package experiments

// Tables are what the experiments came to, with all digits.
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
			splits.add(s.Program, s.Way, node+1, n, s.Predicted[node], s.Mean(node), s.Promised, s.Run, s.Tail, s.Ratio)
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
	curve := newTable("curve", "program", "samples", "basis", "error_held_back", "error", "run_seconds", "by_shortest",
		"worst_by_shortest")
	for _, c := range r.Curve {
		curve.add(c.Program, c.Samples, c.Basis, c.HeldBack, c.Error, c.Run, c.Longer, c.Worst)
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
