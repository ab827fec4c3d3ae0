package experiments

import (
	"strconv"
)

// Tables are what the experiments came to, with all digits.
func (b *Balance) Tables(r *BalanceResult) []Table {
	return []Table{b.factorTable(r), b.splitTable(r), swarmTable(r), varianceTable(r), curveTable(r), wholeTable(r),
		crawlTable(r)}
}

func (b *Balance) factorTable(r *BalanceResult) Table {
	t := Table{"factors", [][]string{{"program", "factor", "unit", "value", "seconds", "deviation", "predicted_seconds",
		"network", "processor", "disk", "places"}}}
	for i := range r.Factors {
		f := &r.Factors[i]
		mean, deviation := f.Mean()
		t.Lines = append(t.Lines, []string{f.Program, b.Factors[f.Factor].Name, b.Factors[f.Factor].Unit, number(f.Value),
			number(mean), number(deviation), number(f.Predicted), number(f.Piece.Network), number(f.Piece.Processor),
			number(f.Piece.Disk), strconv.Itoa(f.Places)})
	}
	return t
}

func (b *Balance) splitTable(r *BalanceResult) Table {
	t := Table{"splits", [][]string{{"program", "split", "node", "urls", "predicted_seconds", "seconds",
		"run_predicted_seconds", "run_seconds", "tail", "ratio"}}}
	for i := range r.Splits {
		s := &r.Splits[i]
		for node, n := range s.Counts {
			t.Lines = append(t.Lines, []string{s.Program, s.Way, strconv.Itoa(node + 1), strconv.Itoa(n),
				number(s.Predicted[node]), number(s.Mean(node)), number(s.Promised), number(s.Run), number(s.Tail),
				number(s.Ratio)})
		}
	}
	return t
}

func swarmTable(r *BalanceResult) Table {
	t := Table{"swarm", [][]string{{"nodes", "clusters", "split", "mean_ratio", "worst_ratio", "evaluations_per_node",
		"microseconds"}}}
	for _, s := range r.Swarm {
		t.Lines = append(t.Lines, []string{strconv.Itoa(s.Nodes), strconv.Itoa(s.Clusters), s.Way, number(s.Mean),
			number(s.Worst), number(s.Evaluations), number(float64(s.Cost.Nanoseconds()) / 1000)})
	}
	return t
}

func varianceTable(r *BalanceResult) Table {
	t := Table{"variance", [][]string{{"split", "n", "n", "80n", "deviation_seconds", "run_seconds"}}}
	for _, v := range r.Variance {
		line := []string{v.Way}
		for _, n := range v.Counts {
			line = append(line, strconv.Itoa(n))
		}
		t.Lines = append(t.Lines, append(line, number(v.Deviation), number(v.Seconds)))
	}
	return t
}

func curveTable(r *BalanceResult) Table {
	t := Table{"curve", [][]string{{"program", "samples", "basis", "error_held_back", "error", "run_seconds",
		"by_shortest", "worst_by_shortest"}}}
	for _, c := range r.Curve {
		t.Lines = append(t.Lines, []string{c.Program, strconv.Itoa(c.Samples), c.Basis.String(), number(c.HeldBack),
			number(c.Error), number(c.Run), number(c.Longer), number(c.Worst)})
	}
	return t
}

func wholeTable(r *BalanceResult) Table {
	t := Table{"runs", [][]string{{"program", "run", "samples", "basis", "error", "run_seconds", "by_shortest"}}}
	for _, w := range r.Whole {
		t.Lines = append(t.Lines, []string{w.Program, strconv.Itoa(w.Number), strconv.Itoa(w.Samples), w.Basis.String(),
			number(w.Error), number(w.Run), number(w.Longer)})
	}
	return t
}
