package text

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kumo/internal/archive/export/table"
	"kumo/internal/archive/links"
	"kumo/internal/base/stats"
)

// ChainColumns are the columns of [ChainCells].
var ChainColumns = []string{"url", "links", "redirects", "end", "status", "error", "broken", "steps"}

// ChainCells returns a chain as cells of CSV. Steps are "301 URL 302 URL": each status with the URL it leads to.
func ChainCells(c *links.Chain) []string {
	var steps []string
	for _, s := range c.Steps {
		steps = append(steps, strconv.Itoa(s.Status), s.To)
	}
	return []string{table.Cell(c.URL), strconv.FormatInt(c.Links, 10), strconv.Itoa(c.Redirects), table.Cell(c.End),
		strconv.Itoa(c.Status), c.Error, strconv.FormatBool(c.Broken), strings.Join(steps, " ")}
}

// OrphanColumns are the columns of [OrphanCells].
var OrphanColumns = []string{"url", "status", "error", "redirects", "sitemap"}

// OrphanCells returns an orphan as cells of CSV.
func OrphanCells(o *links.Orphan) []string {
	return []string{table.Cell(o.URL), strconv.Itoa(o.Status), o.Error, table.Cell(strings.Join(o.Redirects, " ")),
		table.Cell(o.Sitemap)}
}

// LinkColumns are the columns of [LinkCells].
var LinkColumns = []string{"url", "status", "error", "redirects", "from", "kind", "text"}

// LinkCells returns a link as cells of CSV.
func LinkCells(l *links.Link) []string {
	return []string{table.Cell(l.URL), strconv.Itoa(l.Status), l.Error, table.Cell(strings.Join(l.Redirects, " ")),
		table.Cell(l.From), l.Kind, table.Cell(l.Text)}
}

// A Printer prints values of one type. End reports errors of printing.
type Printer[T any] struct {
	Print func(*T) error
	End   func() error
}

// NewChainPrinter returns a printer of redirect chains: each with its end, and a line for each step.
func NewChainPrinter(w io.Writer, as LinkFormat) Printer[links.Chain] {
	return newPrinter(w, as, ChainColumns, ChainCells, func(c *links.Chain) error {
		fmt.Fprintf(w, "%-11s %s  (%s)\n", outcomeWord(c.Status, c.Error), c.URL, stats.Count(c.Links, "links"))
		var err error
		for _, s := range c.Steps {
			_, err = fmt.Fprintf(w, "     %d -> %s\n", s.Status, s.To)
		}
		return err
	})
}

// NewOrphanPrinter returns a printer of orphans, one a line.
func NewOrphanPrinter(w io.Writer, as LinkFormat) Printer[links.Orphan] {
	return newPrinter(w, as, OrphanColumns, OrphanCells, func(o *links.Orphan) error {
		_, err := fmt.Fprintf(w, "%-11s %s  (%s)\n", outcomeWord(o.Status, o.Error),
			strings.Join(append([]string{o.URL}, o.Redirects...), " -> "), o.Sitemap)
		return err
	})
}

func newPrinter[T any](w io.Writer, as LinkFormat, columns []string, cells func(*T) []string, line func(*T) error,
) Printer[T] {
	switch as {
	case LinksJSON:
		return Printer[T]{func(v *T) error { return JSON(w, v) }, func() error { return nil }}
	case LinksCSV:
		out := csv.NewWriter(w)
		_ = out.Write(columns) // reported by Error
		return Printer[T]{func(v *T) error { return out.Write(cells(v)) },
			func() error { out.Flush(); return out.Error() }}
	default:
		return Printer[T]{line, func() error { return nil }}
	}
}
