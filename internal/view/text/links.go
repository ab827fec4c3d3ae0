package text

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kumo/internal/archive/export/table"
	"kumo/internal/archive/links"
)

// LinkFormat selects how links are printed.
type LinkFormat int

// Formats of links.
const (
	LinksByURL LinkFormat = iota // each URL once, above the pages that link to it
	LinkLines                    // one line per link
	LinksCSV
	LinksJSON
)

// A LinkPrinter prints links.
type LinkPrinter struct {
	Print func(*links.Link) error
	End   func() error
}

// NewLinkPrinter returns a printer for a format.
func NewLinkPrinter(w io.Writer, as LinkFormat) LinkPrinter {
	p := LinkPrinter{End: func() error { return nil }}
	switch as {
	case LinksJSON:
		p.Print = func(l *links.Link) error { return JSON(w, l) }
	case LinksCSV:
		return csvLinks(csv.NewWriter(w))
	case LinkLines:
		p.Print = func(l *links.Link) error {
			_, err := fmt.Fprintf(w, "%-11s %s%s\n", linkWord(l),
				strings.Join(append([]string{l.URL}, l.Redirects...), " -> "), linkText(l))
			return err
		}
	default:
		p.Print = groupedLinks(w)
	}
	return p
}

func csvLinks(w *csv.Writer) LinkPrinter {
	_ = w.Write([]string{"url", "status", "error", "redirects", "from", "kind", "text"}) // reported by Error
	return LinkPrinter{
		Print: func(l *links.Link) error {
			return w.Write([]string{table.Cell(l.URL), strconv.Itoa(l.Status), l.Error,
				table.Cell(strings.Join(l.Redirects, " ")), table.Cell(l.From), l.Kind, table.Cell(l.Text)})
		},
		End: func() error {
			w.Flush()
			return w.Error()
		},
	}
}

// groupedLinks prints each URL once, above the pages that link to it.
func groupedLinks(w io.Writer) func(*links.Link) error {
	last := ""
	return func(l *links.Link) error {
		if l.URL != last {
			if last != "" {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "%-7s %s\n", linkWord(l), l.URL)
			for _, to := range l.Redirects {
				fmt.Fprintf(w, "     -> %s\n", to)
			}
		}
		last = l.URL
		_, err := fmt.Fprintf(w, "   from %s%s\n", l.From, linkText(l))
		return err
	}
}

// linkWord returns the outcome of a link in a word.
func linkWord(l *links.Link) string {
	switch {
	case l.Error != "":
		return l.Error
	case l.Status > 0:
		return strconv.Itoa(l.Status)
	}
	return "ok"
}

func linkText(l *links.Link) string {
	switch {
	case l.Text != "":
		return fmt.Sprintf("  %q", l.Text)
	case l.Kind != "a":
		return "  (" + l.Kind + ")"
	}
	return ""
}
