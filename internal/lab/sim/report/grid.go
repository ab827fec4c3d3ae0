package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// grid prints a table for people below its title.
func grid(w io.Writer, title string, fill func(tab io.Writer)) error {
	fmt.Fprintf(w, "\n%s\n", title)
	return table(w, fill)
}

// table prints a table for people: cells of a line end with tabs. It has no blanks at the end of lines.
func table(w io.Writer, fill func(tab io.Writer)) error {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(tab)
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
