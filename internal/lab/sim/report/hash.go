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
	if err := printHash(out, h, rows); err != nil {
		return err
	}
	return to.results([]experiments.Table{HashTable(rows)}, nil)
}

// printHash prints the table for people, with an empty line between numbers of nodes.
func printHash(w io.Writer, h *experiments.Hash, rows []experiments.HashRow) error {
	fmt.Fprintf(w, "%d slots, %d hosts, seed %d\n\n", h.Slots, h.Hosts, h.Seed)
	return table(w, func(tab io.Writer) {
		head := "nodes\tway\tmax/mean\tdeviation\tp\tjoin\tleast\tin vain\tleave\tleast\tin vain\t"
		if h.Now != nil {
			head += "ns\t"
		}
		fmt.Fprintln(tab, head)
		for i, r := range rows {
			if i > 0 && rows[i-1].Nodes != r.Nodes {
				fmt.Fprintln(tab, strings.Repeat("\t", strings.Count(head, "\t"))) // a line without cells would end the columns
			}
			fmt.Fprintf(tab, "%d\t%s\t%.3f\t%s\t%.2g\t%s\t%s\t", r.Nodes, r.Way, r.MaxMean, percent(r.Deviation), r.P,
				moves(r.Join), moves(r.Leave))
			if h.Now != nil {
				fmt.Fprintf(tab, "%d\t", r.Cost.Nanoseconds())
			}
			fmt.Fprintln(tab)
		}
	})
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// moves are three cells; dashes if there was no change to look at.
func moves(m experiments.Moves) string {
	if m == (experiments.Moves{}) {
		return "-\t-\t-"
	}
	return percent(m.All) + "\t" + percent(m.Least) + "\t" + percent(m.InVain)
}

// HashTable is the table with all digits.
func HashTable(rows []experiments.HashRow) experiments.Table {
	t := experiments.Table{Name: "hash", Lines: [][]string{{"nodes", "way", "max_mean", "deviation", "p", "join",
		"join_least", "join_in_vain", "leave", "leave_least", "leave_in_vain", "ns"}}}
	for _, r := range rows {
		line := []string{strconv.Itoa(r.Nodes), r.Way}
		for _, x := range []float64{r.MaxMean, r.Deviation, r.P, r.Join.All, r.Join.Least, r.Join.InVain, r.Leave.All,
			r.Leave.Least, r.Leave.InVain} {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		t.Lines = append(t.Lines, append(line, strconv.FormatInt(r.Cost.Nanoseconds(), 10)))
	}
	return t
}
