package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

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

// NewLinkPrinter returns a printer of links.
func NewLinkPrinter(w io.Writer, as LinkFormat) Printer[links.Link] {
	line := groupedLinks(w)
	if as == LinkLines {
		line = func(l *links.Link) error {
			_, err := fmt.Fprintf(w, "%-11s %s%s\n", linkWord(l),
				strings.Join(append([]string{l.URL}, l.Redirects...), " -> "), linkText(l))
			return err
		}
	}
	return newPrinter(w, as, LinkColumns, LinkCells, line)
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
func linkWord(l *links.Link) string { return outcomeWord(l.Status, l.Error) }

func outcomeWord(status int, failure string) string {
	switch {
	case failure != "":
		return failure
	case status > 0:
		return strconv.Itoa(status)
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
