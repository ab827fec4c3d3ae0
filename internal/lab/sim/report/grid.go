package report

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/view/results"
)

// A sheet is the text of a report.
type sheet struct{ bytes.Buffer }

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// grid prints a table for people below its title.
func (s *sheet) grid(title string, fill func(tab io.Writer)) {
	s.printf("\n%s\n", title)
	s.table(fill)
}

// table prints a table for people: cells of a line end with tabs. It has no blanks at the end of lines.
func (s *sheet) table(fill func(tab io.Writer)) {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(tab)
	_ = tab.Flush() // into memory
	for line := range strings.Lines(b.String()) {
		s.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// separator is a line between others of so many cells; one without cells would end the columns.
func separator(cells int) string { return strings.Repeat("\t", cells) }

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// statements prints for each statement of a paper whether the numbers confirm it, and why not, grouped by runs. The
// folder's description has them, too.
func (s *sheet) statements(to *Folder, heading string, all []results.Statement) {
	s.printf("\n%s\n", heading)
	to.made.Statements = append(to.made.Statements, all...)
	of := ""
	for _, st := range all {
		if st.Of != of {
			s.printf("\nOf %s\n", st.Of)
			of = st.Of
		}
		s.printf("  %s  %s: %s\n", map[bool]string{true: "seen    ", false: "not seen"}[st.Seen], st.Statement, st.Measured)
		if st.Why != "" {
			s.printf("            %s\n", st.Why)
		}
	}
}

// finish writes the sheet, and the results to the folder.
func (s *sheet) finish(out io.Writer, to *Folder, tables []experiments.Table, pictures []experiments.NamedPicture) error {
	if _, err := s.WriteTo(out); err != nil {
		return err
	}
	return to.results(tables, pictures)
}
