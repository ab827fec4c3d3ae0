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

// A sheet is a report's text.
type sheet struct{ bytes.Buffer }

func (s *sheet) printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// grid prints a table with a title.
func (s *sheet) grid(title string, fill func(tab io.Writer)) {
	s.printf("\n%s\n", title)
	s.table(fill)
}

// table prints an aligned table without trailing blanks. fill ends each cell with a tab.
func (s *sheet) table(fill func(tab io.Writer)) {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fill(tab)
	_ = tab.Flush() // writes to memory
	for line := range strings.Lines(b.String()) {
		s.printf("%s\n", strings.TrimRight(line, " \n"))
	}
}

// separator returns an empty line of cells. Without cells, the line would end the alignment of columns.
func separator(cells int) string { return strings.Repeat("\t", cells) }

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 2, 64) + " %" }

// statements prints whether the numbers confirm each statement of a paper, and if not, why, grouped by runs. It also
// adds the statements to the folder's description.
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

// finish prints the sheet, and writes the results to the folder.
func (s *sheet) finish(out io.Writer, to *Folder, tables []experiments.Table,
	pictures []experiments.NamedPicture) error {
	if _, err := s.WriteTo(out); err != nil {
		return err
	}
	return to.results(tables, pictures)
}
