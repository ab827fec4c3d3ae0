package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// flush writes a table without blanks at the end of lines.
func flush(w io.Writer, tab *tabwriter.Writer, b *strings.Builder) error {
	if err := tab.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// grid prints a table for people: cells of a line end with tabs.
func grid(w io.Writer, title string, fill func(tab io.Writer)) error {
	fmt.Fprintf(w, "\n%s\n", title)
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(tab)
	return flush(w, tab, &b)
}
