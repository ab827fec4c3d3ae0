package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"kumo/internal/lab/sim/experiments"
)

// Hash prints how evenly hosts are placed on nodes, and writes the table.
func Hash(out io.Writer, to *Folder, h *experiments.Hash, rows []experiments.HashRow) error {
	if err := printHash(out, h, rows); err != nil {
		return err
	}
	return to.table("hash", func(w io.Writer) error { return WriteHash(w, rows) })
}

// printHash prints the table for people, with an empty line between numbers of nodes.
func printHash(w io.Writer, h *experiments.Hash, rows []experiments.HashRow) error {
	fmt.Fprintf(w, "%d slots, %d hosts, seed %d\n\n", h.Slots, h.Hosts, h.Seed)
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
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
	return flush(w, tab, &b)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// moves are three cells; dashes if there was no change to look at.
func moves(m experiments.Moves) string {
	if m == (experiments.Moves{}) {
		return "-\t-\t-"
	}
	return percent(m.All) + "\t" + percent(m.Least) + "\t" + percent(m.InVain)
}

// WriteHash writes the table as CSV.
func WriteHash(to io.Writer, rows []experiments.HashRow) error {
	w := csv.NewWriter(to)
	lines := [][]string{{"nodes", "way", "max_mean", "deviation", "p", "join", "join_least", "join_in_vain", "leave",
		"leave_least",
		"leave_in_vain", "ns"}}
	for _, r := range rows {
		line := []string{strconv.Itoa(r.Nodes), r.Way}
		for _, x := range []float64{r.MaxMean, r.Deviation, r.P, r.Join.All, r.Join.Least, r.Join.InVain, r.Leave.All,
			r.Leave.Least, r.Leave.InVain} {
			line = append(line, strconv.FormatFloat(x, 'g', -1, 64))
		}
		lines = append(lines, append(line, strconv.FormatInt(r.Cost.Nanoseconds(), 10)))
	}
	return w.WriteAll(lines)
}
