package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"kumo/internal/lab/sim/experiments"
)

// Hash prints how evenly hosts are placed on nodes, and writes the table.
func Hash(out io.Writer, to *Folder, h *experiments.Hash, rows []experiments.HashRow) error {
	var w sheet
	w.printf("%d slots, %d hosts, seed %d\n\n", h.Slots, h.Hosts, h.Seed)
	w.table(func(tab io.Writer) {
		head := "nodes\tway\tmax/mean\tdeviation\tp\tjoin\tleast\tin vain\tleave\tleast\tin vain\t"
		if h.Now != nil {
			head += "ns\t"
		}
		fmt.Fprintln(tab, head)
		for i, r := range rows {
			if i > 0 && rows[i-1].Nodes != r.Nodes {
				fmt.Fprintln(tab, separator(strings.Count(head, "\t")))
			}
			fmt.Fprintf(tab, "%d\t%s\t%.3f\t%s\t%.2g\t%s\t%s\t", r.Nodes, r.Way, r.MaxMean, percent(r.Deviation), r.P,
				moves(r.Join), moves(r.Leave))
			if h.Now != nil {
				fmt.Fprintf(tab, "%d\t", r.Cost.Nanoseconds())
			}
			fmt.Fprintln(tab)
		}
	})
	return w.finish(out, to, []experiments.Table{HashTable(rows)}, nil)
}

// moves are three cells; dashes if there was no change to look at.
func moves(m experiments.Moves) string {
	if m == (experiments.Moves{}) {
		return "-\t-\t-"
	}
	return percent(m.All) + "\t" + percent(m.Minimum) + "\t" + percent(m.Unnecessary)
}

// HashTable is the table with all digits.
func HashTable(rows []experiments.HashRow) experiments.Table {
	t := experiments.Table{Name: "hash", Lines: [][]string{{"nodes", "way", "max_mean", "deviation", "p", "join",
		"join_least", "join_in_vain", "leave", "leave_least", "leave_in_vain", "ns"}}}
	for _, r := range rows {
		line := []string{strconv.Itoa(r.Nodes), r.Way}
		for _, x := range []float64{r.MaxMean, r.Deviation, r.P, r.Join.All, r.Join.Minimum, r.Join.Unnecessary, r.Leave.All,
			r.Leave.Minimum, r.Leave.Unnecessary} {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		t.Lines = append(t.Lines, append(line, strconv.FormatInt(r.Cost.Nanoseconds(), 10)))
	}
	return t
}
