package experiments

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"

	"kumo/internal/view/results"
)

// judged are statements of a paper, or of what kumo is to do, and whether the runs show them.
type judged []results.Statement

// find adds a statement about some runs. Why it is not seen is as far as the figures tell.
func (j *judged) find(of, text string, seen bool, numbers, why string) {
	if seen {
		why = ""
	}
	*j = append(*j, results.Statement{Of: of, Seen: seen, Statement: text, Measured: numbers, Why: why})
}

// A Table is a file of lines.
type Table struct {
	Name  string
	Lines [][]string // the first are the names of columns
}

func newTable(name string, columns ...string) Table { return Table{name, [][]string{columns}} }

// add adds a line; of numbers it has as many digits as mean something.
func (t *Table) add(cells ...any) {
	line := make([]string, len(cells))
	for i, c := range cells {
		if x, is := c.(float64); is {
			line[i] = number(x)
		} else {
			line[i] = fmt.Sprint(c)
		}
	}
	t.Lines = append(t.Lines, line)
}

// Write writes the table as CSV.
func (t *Table) Write(w io.Writer) error { return csv.NewWriter(w).WriteAll(t.Lines) }

func number(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }
